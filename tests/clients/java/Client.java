import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.ClientTransportFilter;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What a Java program on netty gets from Weir: short deadlines, cancelled calls, streams. None of them may cost another call,
 * or the connection. Fails at the first answer that is wrong.
 */
public final class Client {
    private static final AtomicInteger CONNECTIONS = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        ManagedChannel channel = NettyChannelBuilder.forTarget(args[0]).usePlaintext()
            .addTransportFilter(new ClientTransportFilter() {
                @Override
                public Attributes transportReady(Attributes attributes) {
                    CONNECTIONS.incrementAndGet();
                    return attributes;
                }
            }).build();
        Questions open = new Questions(channel);
        open.ask("before");
        exact(channel);
        deadlines(channel);
        open.ask("after calls with short deadlines");
        cancellations(channel);
        open.ask("after cancelled calls");
        pipelined(channel, 20_000);
        open.end();
        check("all of this on " + CONNECTIONS + " connection", CONNECTIONS.get() == 1);
        channel.shutdownNow();
        System.out.println("all ok");
    }

    /** Calls at once: exactly as many are allowed as may be. */
    private static void exact(ManagedChannel channel) throws Exception {
        AtomicInteger allowed = new AtomicInteger();
        together(50, caller -> {
            for (int call = 0; call < 20; call++) {
                if (Messages.allowed(unary(channel, soon(), "api/exact", "java-" + caller))) {
                    allowed.incrementAndGet();
                }
            }
        });
        check(allowed + " of 1000 are allowed", allowed.get() == 500);
    }

    /** netty sends the DATA of a call whose deadline has passed after the RST_STREAM. */
    private static void deadlines(ManagedChannel channel) throws Exception {
        Outcomes outcomes = new Outcomes();
        together(100, caller -> {
            for (int call = 0; call < 200; call++) {
                CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(1, TimeUnit.MILLISECONDS);
                outcomes.count(() -> unary(channel, options, "api/deadline", "java"));
            }
        });
        outcomes.only("20000 calls with a deadline of 1 ms", Status.Code.OK, Status.Code.DEADLINE_EXCEEDED);
    }

    /** One in ten of these calls is not cancelled, and answered. */
    private static void cancellations(ManagedChannel channel) throws Exception {
        Outcomes cancelled = new Outcomes();
        Outcomes others = new Outcomes();
        together(20, caller -> {
            for (int call = 0; call < 500; call++) {
                byte[] question = Messages.question("api/cancelled", "java");
                Future<byte[]> future = ClientCalls.futureUnaryCall(channel.newCall(Messages.SHOULD_ALLOW, soon()), question);
                future.cancel(true);
                cancelled.count(() -> {
                    if (future.isCancelled()) {
                        throw Status.CANCELLED.asRuntimeException();
                    }
                    future.get();
                });
                if (call % 10 == 0) {
                    others.count(() -> unary(channel, soon(), "api/others", "java"));
                }
            }
        });
        cancelled.only("10000 cancelled calls", Status.Code.OK, Status.Code.CANCELLED);
        others.only("1000 calls between them", Status.Code.OK);
    }

    /** All questions are sent ahead of their answers. Each has one, in order. */
    private static void pipelined(ManagedChannel channel, int questions) throws Exception {
        CompletableFuture<Long> answered = new CompletableFuture<>();
        StreamObserver<byte[]> sender = ClientCalls.asyncBidiStreamingCall(
            channel.newCall(Messages.STREAM, soon()),
            new StreamObserver<>() {
                private long next;

                @Override
                public void onNext(byte[] response) {
                    for (byte[] result : Messages.results(response)) {
                        if (Messages.id(result) != next++) {
                            answered.completeExceptionally(new IllegalStateException("the answer before " + next));
                        }
                    }
                }

                @Override
                public void onError(Throwable error) {
                    answered.completeExceptionally(error);
                }

                @Override
                public void onCompleted() {
                    answered.complete(next);
                }
            });
        for (long id = 0; id < questions; id++) {
            sender.onNext(Messages.streamed(id, Messages.question("api/stream", "java-" + id % 97)));
        }
        sender.onCompleted();
        check(questions + " questions ahead of their answers", answered.get() == questions);
    }

    /** A stream that is open while other calls end. */
    private static final class Questions implements StreamObserver<byte[]> {
        private final SynchronousQueue<Object> answers = new SynchronousQueue<>();
        private final StreamObserver<byte[]> sender;
        private long asked;

        Questions(ManagedChannel channel) {
            sender = ClientCalls.asyncBidiStreamingCall(channel.newCall(Messages.STREAM, CallOptions.DEFAULT), this);
        }

        void ask(String when) throws InterruptedException {
            asked++;
            sender.onNext(Messages.streamed(asked, Messages.question("api/open", "open")));
            Object answer = answers.poll(1, TimeUnit.MINUTES);
            boolean isFine = answer instanceof byte[] result && Messages.id(result) == asked && Messages.streamedAllowed(result);
            check("a stream is open " + when + (isFine ? "" : ": " + answer), isFine);
        }

        void end() throws InterruptedException {
            sender.onCompleted();
            check("it ends well", "the end".equals(answers.poll(1, TimeUnit.MINUTES)));
        }

        @Override
        public void onNext(byte[] response) {
            Messages.results(response).forEach(this::put);
        }

        @Override
        public void onError(Throwable error) {
            put(error);
        }

        @Override
        public void onCompleted() {
            put("the end");
        }

        private void put(Object answer) {
            try {
                answers.offer(answer, 1, TimeUnit.MINUTES);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** How calls ended, counted. */
    private static final class Outcomes {
        private final Map<Status.Code, Integer> counts = new TreeMap<>();
        private String other = "";

        void count(Action call) throws Exception {
            Status status = Status.OK;
            try {
                call.run();
            } catch (ExecutionException error) {
                status = Status.fromThrowable(error.getCause());
            } catch (RuntimeException error) {
                status = Status.fromThrowable(error);
            }
            synchronized (this) {
                counts.merge(status.getCode(), 1, Integer::sum);
                other = status.getCode() == Status.Code.UNAVAILABLE ? status.toString() : other;
            }
        }

        void only(String what, Status.Code... codes) {
            check(what + ": " + counts + " " + other, List.of(codes).containsAll(counts.keySet()));
        }
    }

    private interface Action {
        void run() throws Exception;
    }

    private interface Caller {
        void run(int number) throws Exception;
    }

    private static byte[] unary(ManagedChannel channel, CallOptions options, String resource, String consumer) {
        byte[] question = Messages.question(resource, consumer);
        return ClientCalls.blockingUnaryCall(channel, Messages.SHOULD_ALLOW, options, question);
    }

    /** Long enough that only what never comes is missed. */
    private static CallOptions soon() {
        return CallOptions.DEFAULT.withDeadlineAfter(1, TimeUnit.MINUTES);
    }

    /** Runs so many callers at once; the first failure is thrown. */
    private static void together(int callers, Caller caller) throws Exception {
        List<CompletableFuture<Void>> ended = new ArrayList<>();
        for (int number = 0; number < callers; number++) {
            int own = number;
            CompletableFuture<Void> end = new CompletableFuture<>();
            ended.add(end);
            new Thread(() -> {
                try {
                    caller.run(own);
                    end.complete(null);
                } catch (Throwable error) {
                    end.completeExceptionally(error);
                }
            }).start();
        }
        for (CompletableFuture<Void> end : ended) {
            end.get();
        }
    }

    private static void check(String what, boolean isFine) {
        if (!isFine) {
            System.err.println("wrong: " + what);
            System.exit(1);
        }
        System.out.println("ok: " + what);
    }
}
