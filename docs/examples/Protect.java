// An HTTP server that asks Weir first, with the JDK alone: java Protect.java [WEIR [PORT]]
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executors;

public final class Protect {
    private static final List<String> HEADERS = List.of("RateLimit", "RateLimit-Policy", "Retry-After");
    private static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** What Weir says of a request; null if it does not answer within a second. */
    static HttpResponse<String> ask(String weir, HttpExchange exchange) {
        String user = exchange.getRequestHeaders().getFirst("X-User");
        HttpRequest question = HttpRequest.newBuilder(URI.create(weir + "/check/api"))
            .header("X-User", user == null ? "nobody" : user)
            .timeout(Duration.ofSeconds(1))
            .build();
        try {
            return CLIENT.send(question, BodyHandlers.ofString());
        } catch (IOException away) {
            System.err.println("not limited: " + away);
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
        return null;
    }

    /** Says hello if Weir allows it, and also while Weir is away. */
    static void handle(String weir, HttpExchange exchange) throws IOException {
        HttpResponse<String> answer = ask(weir, exchange);
        int status = answer == null ? 200 : answer.statusCode();
        if (answer != null) {
            for (String name : HEADERS) {
                answer.headers().firstValue(name).ifPresent(value -> exchange.getResponseHeaders().set(name, value));
            }
        }
        byte[] body = (status == 200 ? "hello\n" : answer.body()).getBytes();
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws IOException {
        String weir = args.length > 0 ? args[0] : "http://127.0.0.1:8082";
        int port = args.length > 1 ? Integer.parseInt(args[1]) : 8000;
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.createContext("/", exchange -> handle(weir, exchange));
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
