import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The methods of RateLimitService, and as much of their messages as the client needs. So the tests need no generator. */
final class Messages {
    static final MethodDescriptor<byte[], byte[]> SHOULD_ALLOW = method("ShouldAllow", MethodType.UNARY);
    static final MethodDescriptor<byte[], byte[]> STREAM = method("ShouldAllowStream", MethodType.BIDI_STREAMING);

    /** A ShouldAllowRequest. */
    static byte[] question(String resource, String consumer) {
        return join(field(1, utf8(resource)), field(2, utf8(consumer)));
    }

    /** A ShouldAllowStreamRequest with one question. */
    static byte[] streamed(long id, byte[] question) {
        return field(1, join(join(tag(1, 0), varint(id)), field(2, question)));
    }

    /** ShouldAllowResponse.allowed. */
    static boolean allowed(byte[] response) {
        return number(response, 1) == 1;
    }

    /** The results of a ShouldAllowStreamResponse. */
    static List<byte[]> results(byte[] response) {
        List<byte[]> results = new ArrayList<>();
        ByteBuffer rest = ByteBuffer.wrap(response);
        while (find(rest, 1)) {
            results.add(readBytes(rest));
        }
        return results;
    }

    /** StreamedResult.id. */
    static long id(byte[] result) {
        return number(result, 1);
    }

    /** ShouldAllowResponse.allowed of a StreamedResult. */
    static boolean streamedAllowed(byte[] result) {
        ByteBuffer rest = ByteBuffer.wrap(result);
        return find(rest, 2) && allowed(readBytes(rest));
    }

    private static MethodDescriptor<byte[], byte[]> method(String name, MethodType type) {
        MethodDescriptor.Marshaller<byte[]> bytes = new MethodDescriptor.Marshaller<>() {
            @Override
            public InputStream stream(byte[] message) {
                return new ByteArrayInputStream(message);
            }

            @Override
            public byte[] parse(InputStream message) {
                try {
                    return message.readAllBytes();
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }
        };
        String path = MethodDescriptor.generateFullMethodName("weir.v1.RateLimitService", name);
        return MethodDescriptor.newBuilder(bytes, bytes).setType(type).setFullMethodName(path).build();
    }

    /** The value of a varint field; 0 if it is not there. */
    private static long number(byte[] message, int field) {
        ByteBuffer rest = ByteBuffer.wrap(message);
        return find(rest, field) ? readVarint(rest) : 0;
    }

    private static byte[] readBytes(ByteBuffer from) {
        byte[] value = new byte[(int) readVarint(from)];
        from.get(value);
        return value;
    }

    /** Moves behind the next tag of a field. Returns false if there is none. */
    private static boolean find(ByteBuffer rest, int field) {
        while (rest.hasRemaining()) {
            long tag = readVarint(rest);
            if (tag >> 3 == field) {
                return true;
            }
            switch ((int) tag & 7) {
                case 0 -> readVarint(rest);
                case 1 -> rest.getLong();
                case 2 -> readBytes(rest);
                case 5 -> rest.getInt();
                default -> throw new IllegalStateException("tag " + tag);
            }
        }
        return false;
    }

    private static long readVarint(ByteBuffer from) {
        long value = 0;
        for (int shift = 0; ; shift += 7) {
            byte part = from.get();
            value |= (long) (part & 0x7f) << shift;
            if (part >= 0) {
                return value;
            }
        }
    }

    private static byte[] field(int number, byte[] value) {
        return join(join(tag(number, 2), varint(value.length)), value);
    }

    private static byte[] tag(int number, int type) {
        return varint((long) number << 3 | type);
    }

    private static byte[] varint(long value) {
        ByteArrayOutputStream to = new ByteArrayOutputStream();
        for (; value > 0x7f; value >>>= 7) {
            to.write((int) value & 0x7f | 0x80);
        }
        to.write((int) value);
        return to.toByteArray();
    }

    private static byte[] join(byte[] first, byte[] second) {
        return ByteBuffer.allocate(first.length + second.length).put(first).put(second).array();
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
