"""Work under a lease of Weir. It is renewed at a third of its ttl and released at the end."""

import threading
import time
import uuid

import grpc
from weir.v1 import leases_pb2 as weir
from weir.v1 import leases_pb2_grpc


class Refused(Exception):
    """The permits were not granted."""


class Lease:
    """`with Lease(stub, resource="exports", consumer="acme") as lease:` holds a permit.

    Look at `lease.lost` while you work, and stop when it is set: others may have the permit.
    """

    def __init__(self, stub, **request):
        self.stub = stub
        self.request = {"id": str(uuid.uuid4()), **request}
        self.lost = threading.Event()
        self.done = threading.Event()

    def __enter__(self):
        asked = time.monotonic()
        answer = self.stub.Acquire(weir.AcquireRequest(**self.request), timeout=2)
        if not answer.allowed:
            raise Refused(answer.message)
        self.who = {name: value for name, value in self.request.items() if name not in ("weight", "ttl")}
        self.thread = None
        if answer.id:  # without an id there is no lease: nothing to renew, nothing to release
            ttl = answer.expires_after.ToTimedelta().total_seconds()
            self.thread = threading.Thread(target=self.renew, args=(asked, ttl), daemon=True)
            self.thread.start()
        return self

    def renew(self, renewed, ttl):
        while not self.done.wait(ttl / 3):
            if time.monotonic() - renewed > ttl:
                return self.lost.set()  # Weir could not be reached for a whole ttl
            asked = time.monotonic()
            request = weir.RenewRequest(**self.who)
            if "ttl" in self.request:
                request.ttl.CopyFrom(self.request["ttl"])
            try:
                answer = self.stub.Renew(request, timeout=ttl / 3)
            except grpc.RpcError:
                continue
            if not answer.held:
                return self.lost.set()
            renewed = asked

    def __exit__(self, error, *_):
        self.done.set()
        if self.thread is None:
            return
        self.thread.join()
        # What is cancelled or lost says nothing of the load. A timeout is a drop, anything else took its time.
        outcome = weir.WORK_OUTCOME_SUCCESS
        if error is not None:
            dropped = issubclass(error, TimeoutError)
            outcome = weir.WORK_OUTCOME_DROPPED if dropped else weir.WORK_OUTCOME_IGNORED
        try:
            self.stub.Release(weir.ReleaseRequest(outcome=outcome, **self.who), timeout=2)
        except grpc.RpcError:
            pass  # the lease ends by itself


def main():
    with grpc.insecure_channel("127.0.0.1:8081") as channel:
        stub = leases_pb2_grpc.ConcurrencyServiceStub(channel)
        try:
            with Lease(stub, resource="exports", consumer="acme") as lease:
                for part in range(3):
                    if lease.lost.is_set():
                        print("stop: others may export now")
                        return
                    print("export part", part)
        except Refused as refused:
            print(refused)


if __name__ == "__main__":
    main()
