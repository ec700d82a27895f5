"""Calls Weir with Connect for Python, as JSON and as Protobuf: client.py URL"""

import sys
import time

from connectrpc.code import Code
from connectrpc.compat import google_protobuf_binary_codec, google_protobuf_json_codec
from connectrpc.errors import ConnectError
from weir.v1 import queues_pb2, rate_limit_pb2
from weir.v1.queues_connect import QueueServiceClientSync
from weir.v1.rate_limit_connect import RateLimitServiceClientSync

URL = sys.argv[1]


def code_of(call):
    try:
        call()
    except ConnectError as error:
        return error
    raise AssertionError("no error")


def check(codec, consumer):
    client = RateLimitServiceClientSync(URL, codec=codec, accept_compression=[], send_compression=None)
    question = rate_limit_pb2.ShouldAllowRequest(resource="x", consumer=consumer, strategy="two", cost=1, headers=True)
    answers = [client.should_allow(question, timeout_ms=5_000) for _ in range(3)]
    assert [answer.allowed for answer in answers] == [True, True, False], answers
    assert answers[2].reason == rate_limit_pb2.REASON_LIMITED and answers[2].retry_after.seconds == 1_799, answers
    assert answers[2].headers["Retry-After"] == "1800", answers
    batch = client.should_allow_batch(rate_limit_pb2.ShouldAllowBatchRequest(requests=[question] * 2))
    assert [result.response.allowed for result in batch.results] == [False, False], batch
    unknown = code_of(lambda: client.should_allow(rate_limit_pb2.ShouldAllowRequest(resource="x", consumer="y", strategy="tow")))
    assert unknown.code == Code.NOT_FOUND and "tow" in unknown.message and len(unknown.details) == 1, unknown
    missing = code_of(lambda: client.should_allow(rate_limit_pb2.ShouldAllowRequest(resource="x", strategy="two")))
    assert missing.code == Code.INVALID_ARGUMENT, missing
    large = code_of(lambda: client.should_allow(rate_limit_pb2.ShouldAllowRequest(resource="x" * 70_000)))
    assert large.code == Code.RESOURCE_EXHAUSTED, large
    queues = QueueServiceClientSync(URL, codec=codec, accept_compression=[], send_compression=None)
    # Take waits no longer than the caller's deadline, which travels as a header; a busy caller may be late for the answer.
    started = time.monotonic()
    try:
        assert not queues.take(take(), timeout_ms=1_000).items
    except ConnectError as late:
        assert late.code == Code.DEADLINE_EXCEEDED, late
    assert time.monotonic() - started < 10


def take():
    request = queues_pb2.TakeRequest(queue="jobs", consumer="worker")
    request.max_wait.seconds = 20
    return request


check(google_protobuf_json_codec(), "python-json")
check(google_protobuf_binary_codec(), "python-proto")
print("all ok")
