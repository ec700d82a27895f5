"""An HTTP server that asks Weir first: http_limit.py [WEIR [PORT]]"""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from weir.v1 import rate_limit_pb2 as pb
from weir.v1 import rate_limit_pb2_grpc

weir_address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8081"
port = int(sys.argv[2]) if len(sys.argv) > 2 else 8000
weir = rate_limit_pb2_grpc.RateLimitServiceStub(grpc.insecure_channel(weir_address))

STATUS = {
    pb.REASON_LIMITED: 429,
    pb.REASON_NEVER: 403,
    pb.REASON_BANNED: 429,
    pb.REASON_DENY_LIST: 403,
    pb.REASON_STORE_FAILURE: 503,
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        # Without the query: a caller that varies it must not find a new limit each time.
        path = self.path.partition("?")[0]
        request = pb.ShouldAllowRequest(
            resource=path, consumer=self.headers.get("X-User", "nobody"), headers=True
        )
        try:
            answer = weir.ShouldAllow(request, timeout=1)
        except grpc.RpcError as error:
            temporary = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
            return self.reply(503 if temporary else 500, {}, "The rate limit cannot be checked")
        # A request with an `id` that is known is allowed with `applied: false`, and charges nothing. This server sends
        # none. Whoever sends one makes it here (uuid4): a caller that chooses its id passes as often as it likes.
        if not answer.allowed:
            return self.reply(STATUS[answer.reason], answer.headers, answer.message)
        self.reply(200, answer.headers, "hello")

    def reply(self, status, headers, text):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(f"{text}\n".encode())


ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
