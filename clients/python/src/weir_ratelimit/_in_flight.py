"""The calls of a client for threads: each in the thread of its caller, with a timeout that holds.

gRPC has a blocking call, which nobody can cancel before its own deadline, and a future, which a thread of gRPC ends:
three times the CPU of a call that waits alone. A call with a stream of answers runs in the thread of its caller, if the
channel has the option "SingleThreadedUnaryStream", and another thread can cancel it. On the wire it is a unary call. It
takes the interpreter's lock more often, so futures are cheaper where many threads wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import grpc

from ._core import DEADLINE_AFTER_TIMER, late
from ._errors import ClosedError, OutageError
from ._timed import Timed, take_overdue
from ._token import Metadata
from ._wire import failure_of

#: `grpc.experimental.ChannelOptions.SingleThreadedUnaryStream`. Without it, calls end all the same, on threads of gRPC.
IN_THE_CALLERS_THREAD = ("SingleThreadedUnaryStream", 1)
#: With so many calls in flight the next is a future. At 1 in flight it takes twice the CPU of the other, at 64 half.
_MANY = 8
#: A thread without calls ends after so many seconds.
_LINGER = 10.0


class Method:
    """A method of a channel."""

    __slots__ = ("future", "stream")

    def __init__(self, channel: Any, path: str) -> None:
        self.future = channel.unary_unary(path).future
        self.stream = channel.unary_stream(path)


class InFlight:
    """Calls that have begun. One thread cancels those whose time is over; it sleeps until the first may be due."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._calls: set[Timed] = set()
        self._wake_at = inf
        self._runs = False
        self.closed = False

    def ask(self, method: Method, message: bytes, timeout: float, metadata: Metadata) -> bytes:
        """Makes one call."""
        begun = Timed(time.monotonic() + timeout)
        many = len(self._calls) >= _MANY
        start = method.future if many else method.stream
        try:
            begun.call = start(message, timeout=timeout + DEADLINE_AFTER_TIMER, metadata=metadata)
        except ValueError as error:
            # The channel was closed in the meantime.
            raise ClosedError from error
        try:
            self._add(begun)
            return begun.call.result() if many else _only(begun.call)
        except grpc.FutureCancelledError as error:
            raise late(timeout) if begun.expired else ClosedError from error
        except grpc.RpcError as error:
            if begun.expired:
                raise late(timeout) from None
            if self.closed and error.code() is grpc.StatusCode.CANCELLED:
                raise ClosedError from error
            raise failure_of(error) from error
        except BaseException:
            begun.call.cancel()
            raise
        finally:
            self._remove(begun)

    def drain(self, timeout: float) -> None:
        """Waits until no call is left, or the time is over."""
        with self._lock:
            self.closed = True
            self._changed.wait_for(lambda: not self._calls, timeout)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Counts a block as a call, such as one with pauses between its calls."""
        block = Timed(inf)
        self._add(block)
        try:
            yield
        finally:
            self._remove(block)

    def _add(self, begun: Timed) -> None:
        with self._lock:
            self._calls.add(begun)
            if begun.due >= self._wake_at:
                return
            self._wake_at = begun.due
            if self._runs:
                self._changed.notify_all()
                return
            self._runs = True
        threading.Thread(target=self._watch, name="weir-timeouts", daemon=True).start()

    def _remove(self, begun: Timed) -> None:
        with self._lock:
            self._calls.discard(begun)
            if self.closed and not self._calls:
                self._changed.notify_all()

    def _watch(self) -> None:
        while True:
            with self._lock:
                late_calls, self._wake_at = take_overdue(self._calls, time.monotonic())
                if not late_calls:
                    if self._wake_at == inf:
                        # A call that has woken it may have ended already.
                        if not self._changed.wait(_LINGER) and self._wake_at == inf:
                            self._runs = False
                            return
                    else:
                        self._changed.wait(max(0.0, self._wake_at - time.monotonic()))
            for call in late_calls:
                call.cancel()


def _only(call: Any) -> bytes:
    """Returns the answer of a stream that has one."""
    answer: bytes | None = next(call, None)
    # The status comes after the message.
    if answer is None or next(call, None) is not None:
        call.cancel()
        raise OutageError("INTERNAL", "the answer is not one message")
    return answer
