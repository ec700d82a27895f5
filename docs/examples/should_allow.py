import grpc
from weir.v1 import rate_limit_pb2, rate_limit_pb2_grpc

with grpc.insecure_channel("127.0.0.1:8081") as channel:
    weir = rate_limit_pb2_grpc.RateLimitServiceStub(channel)
    answer = weir.ShouldAllow(
        rate_limit_pb2.ShouldAllowRequest(resource="zewtopia.com/tigerfeeding", consumer="carol"),
        timeout=1,
    )
    if answer.allowed:
        print("go ahead,", answer.remaining, "left")
    else:
        print(answer.message)
