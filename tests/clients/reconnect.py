"""Asks over and over with the channel options of docs/clients.md, and fails open: `reconnect.py HOST:PORT`. A line says of each
call whether it was answered, so that a test sees for how long a restart leaves the client unlimited."""
import sys
import time

import grpc
from weir.v1 import rate_limit_pb2 as pb
from weir.v1 import rate_limit_pb2_grpc

OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]

with grpc.insecure_channel(sys.argv[1], options=OPTIONS) as channel:
    weir = rate_limit_pb2_grpc.RateLimitServiceStub(channel)
    request = pb.ShouldAllowRequest(resource="api/search", consumer="bob")
    while True:
        try:
            weir.ShouldAllow(request, timeout=0.5)
            print("answered", flush=True)
        except grpc.RpcError:
            print("failed open", flush=True)
        time.sleep(0.1)
