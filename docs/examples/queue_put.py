"""Puts an order into a queue of Weir, or says that there is no place for it."""

import sys
import uuid

import grpc
from weir.v1 import queues_pb2 as weir
from weir.v1 import queues_pb2_grpc


def put(stub, order, attempts=3):
    """Whether the order is in the queue. The id makes it safe to ask again after a lost answer."""
    item = weir.NewItem(payload=order.encode(), id=str(uuid.uuid4()))
    for attempt in range(attempts):
        try:
            answer = stub.Enqueue(weir.EnqueueRequest(queue="orders", items=[item]), timeout=2)
            return answer.accepted
        except grpc.RpcError:
            if attempt == attempts - 1:
                raise


def main(orders):
    with grpc.insecure_channel("127.0.0.1:8081") as channel:
        stub = queues_pb2_grpc.QueueServiceStub(channel)
        for order in orders:
            print(order, "accepted" if put(stub, order) else "refused: the bucket is full, try again later")


if __name__ == "__main__":
    main(sys.argv[1:] or ["order 1", "order 2", "wait 3"])
