"""What a Python program gets from Weir: `client.py HOST:PORT`. Fails at the first answer that is wrong."""
import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from weir.v1 import rate_limit_pb2 as pb
from weir.v1 import rate_limit_pb2_grpc

HOUR = 3600
TIGERS = "zewtopia.com/tigerfeeding"


def equal(what, got, wanted):
    assert got == wanted, f"{what}: {got!r}, not {wanted!r}"
    print("ok:", what)


def refused(what, code, words, call):
    try:
        call()
    except grpc.RpcError as error:
        equal(what, error.code(), code)
        assert words in error.details(), error.details()
        return
    raise AssertionError(f"{what}: answered")


with grpc.insecure_channel(sys.argv[1]) as channel:
    weir = rate_limit_pb2_grpc.RateLimitServiceStub(channel)

    def ask(resource, consumer, **fields):
        request = pb.ShouldAllowRequest(resource=resource, consumer=consumer, **fields)
        return weir.ShouldAllow(request, timeout=10)

    first = ask(TIGERS, "bob")
    equal("the first call is allowed", (first.allowed, first.reason), (True, pb.REASON_OK))
    equal("what remains", (first.remaining, first.limit), (0, 1))
    equal("an allowed call has nothing to wait for", first.HasField("retry_after"), False)
    equal("each limit tells", [limit.name for limit in first.limits], ["everyone", "each"])

    second = ask(TIGERS, "bob")
    equal("the second is denied", (second.allowed, second.reason), (False, pb.REASON_LIMITED))
    equal("by the limit that says so", list(second.denied_by), ["each"])
    wait = second.retry_after.ToTimedelta().total_seconds()
    assert HOUR - 60 < wait <= HOUR, wait
    minutes, seconds = divmod(-int(-wait // 1), 60)
    told = "1h" if minutes == 60 else f"{minutes}m {seconds}s" if seconds else f"{minutes}m"
    equal("with a sentence", second.message, f"Rate limit exceeded. Try again in {told}")
    equal("another consumer is not", ask(TIGERS, "carol").allowed, True)

    equal("a cost is taken", ask("api/search", "bob", cost=7).remaining, 3)
    equal("a peek takes nothing", ask("api/search", "bob", cost=3, peek=True).remaining, 3)
    equal("nor does cost 0", ask("api/search", "bob", cost=0).remaining, 3)
    equal("what does not fit is denied", ask("api/search", "bob", cost=4).reason, pb.REASON_LIMITED)
    never = ask("api/search", "bob", cost=11)
    equal("a cost above the limit has reason NEVER", (never.reason, never.HasField("retry_after")), (pb.REASON_NEVER, False))
    equal("a named strategy", ask("anything", "dave", strategy="api").remaining, 9)

    north, south = {"region": "north"}, {"region": "south"}
    equal("an attribute is counted by", ask("maps", "bob", cost=2, attributes=north).allowed, True)
    equal("each value for itself", [ask("maps", "eve", attributes=where).allowed for where in (north, south)], [False, True])
    refused("a missing one", grpc.StatusCode.INVALID_ARGUMENT, "region", lambda: ask("maps", "bob"))

    crawler, keeper = ask(TIGERS, "bot-7"), ask(TIGERS, "keeper")
    equal("who is on the deny list", (crawler.allowed, crawler.reason), (False, pb.REASON_DENY_LIST))
    equal("who is on the allow list", (keeper.allowed, keeper.reason), (True, pb.REASON_ALLOW_LIST))

    questions = [("api/search", 4), ("api/search", 7), ("nowhere", 1), ("api/search", 0)]
    requests = [pb.ShouldAllowRequest(resource=what, consumer="erin", cost=cost) for what, cost in questions]
    results = weir.ShouldAllowBatch(pb.ShouldAllowBatchRequest(requests=requests), timeout=10).results
    equal("a batch is answered in order", [one.WhichOneof("result") for one in results],
          ["response", "response", "error", "response"])
    equal("each for itself", [results[i].response.allowed for i in (0, 1, 3)], [True, False, True])
    equal("after those before it", [results[i].response.remaining for i in (0, 1, 3)], [6, 6, 6])
    equal("one that fails fails alone", results[2].error.code, grpc.StatusCode.NOT_FOUND.value[0])

    give_back = pb.RefundRequest(resource="api/search", consumer="erin", cost=3, id="order-1")
    refund, again = weir.Refund(give_back, timeout=10), weir.Refund(give_back, timeout=10)
    equal("a refund is applied once", (refund.applied, again.applied), (True, False))
    equal("to its limits", [(limit.name, limit.remaining) for limit in refund.limits], [("burst", 9)])
    equal("and can be taken again", ask("api/search", "erin", cost=9).remaining, 0)

    refused("an unknown strategy", grpc.StatusCode.NOT_FOUND, "tiger-feeding",
            lambda: ask(TIGERS, "bob", strategy="tiger-fedding"))
    refused("no resource", grpc.StatusCode.INVALID_ARGUMENT, "resource", lambda: ask("", "bob"))

    with grpc.insecure_channel(sys.argv[1], compression=grpc.Compression.Gzip) as compressing:
        compressed = rate_limit_pb2_grpc.RateLimitServiceStub(compressing)
        long = "maps/" + "x" * 400
        request = pb.ShouldAllowRequest(resource="api/search", consumer="zoe" + "e" * 200)
        equal("a compressed question is answered", compressed.ShouldAllow(request, timeout=10).remaining, 9)
        refused("a compressed refund of nothing", grpc.StatusCode.NOT_FOUND, "maps/xxx",
                lambda: compressed.Refund(pb.RefundRequest(resource=long, consumer="zoe", cost=1), timeout=10))

    health = health_pb2_grpc.HealthStub(channel)
    for service in ["", "weir.v1.RateLimitService"]:
        answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
        equal(f"health of {service!r}", answer.status, health_pb2.HealthCheckResponse.SERVING)

    reflected = ProtoReflectionDescriptorDatabase(channel)
    listed = set(reflected.get_services())
    assert {"weir.v1.RateLimitService", "grpc.health.v1.Health"} <= listed, listed
    symbol = reflected.FindFileContainingSymbol("weir.v1.RateLimitService")
    equal("reflection", symbol.package, "weir.v1")
print("all ok")
