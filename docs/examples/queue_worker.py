"""A worker of a queue of Weir: it takes orders, works on them one by one, and says what came of each."""

import random
import time

import grpc
from google.protobuf.duration_pb2 import Duration
from weir.v1 import queues_pb2 as weir
from weir.v1 import queues_pb2_grpc

QUEUE = "orders"


class NotNow(Exception):
    """The work cannot be done now, and may be done later."""


def work(stub, consumer, handle, idle=lambda: False, wait=20):
    """Calls `handle(item)` for each item, until `idle()` is true when there was nothing to do for `wait` seconds."""
    request = weir.TakeRequest(queue=QUEUE, consumer=consumer, max_items=1, max_wait=Duration(seconds=wait))
    pause = 0.1
    while True:
        try:
            taken = stub.Take(request, timeout=wait + 5)
            pause = 0.1
        except grpc.RpcError as error:
            print("no answer:", error.code().name)
            time.sleep(pause * random.uniform(0.5, 1))  # the node or its store is away
            pause = min(2 * pause, 5)
            continue
        if not taken.items and idle():
            return
        for item in taken.items:
            settle(stub, item, handle)


def settle(stub, item, handle):
    """Works on an item. What is neither acked nor nacked, because this worker dies, is delivered again."""
    try:
        outcome = handle(item)
    except NotNow:
        # Twice as long after each delivery: 1 s, 2 s, 4 s. After `max_deliveries` it goes to the dead letters.
        delay = Duration(seconds=2 ** min(item.deliveries - 1, 10))
        call(stub.Nack, weir.NackRequest(queue=QUEUE, ids=[item.id], tokens=[item.token], delay=delay))
        return
    answer = call(stub.Ack, weir.AckRequest(queue=QUEUE, ids=[item.id], tokens=[item.token], outcome=outcome))
    if answer is not None and not answer.acked[0]:
        print("acked by another worker, because this one took too long:", item.id)


def call(method, request):
    """Tries a few times. If all fail, the item is delivered again, so the work must bear being done twice."""
    for attempt in range(5):
        try:
            return method(request, timeout=2)
        except grpc.RpcError:
            time.sleep(0.1 * 2**attempt)
    return None


def handle(item):
    order = item.payload.decode()
    if order.startswith("wait") and item.deliveries == 1:
        raise NotNow()
    print(f"{order}, delivery {item.deliveries}")
    return f"shipped {order}"


def main():
    with grpc.insecure_channel("127.0.0.1:8081") as channel:
        stub = queues_pb2_grpc.QueueServiceStub(channel)
        work(stub, "worker-1", handle, idle=lambda: True, wait=3)


if __name__ == "__main__":
    main()
