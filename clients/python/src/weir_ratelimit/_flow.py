"""What both clients do in several steps: written once, as a generator that yields its steps.

The client for threads and the one for asyncio carry out the steps, each in its own way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import NamedTuple, TypeVar

from ._errors import WeirError

T = TypeVar("T")


class Ask(NamedTuple):
    """Call a method. The step gets the answer, or raises what the call raises."""

    path: str
    message: bytes
    timeout: float


class Pause(NamedTuple):
    """Wait so many seconds."""

    seconds: float


#: Steps that end with a result. Each call sends its answer back into the generator.
Flow = Generator[Ask | Pause, bytes, T]
#: Makes one call: the path of a method, a message, and the time for it in seconds.
Call = Callable[[str, bytes, float], bytes]
AsyncCall = Callable[[str, bytes, float], Awaitable[bytes]]


def run(flow: Flow[T], call: Call, pause: Callable[[float], object]) -> T:
    """Carries out the steps of a flow in this thread. What is no error of this package ends the flow."""
    try:
        step = next(flow)
        while True:
            if isinstance(step, Pause):
                pause(step.seconds)
                step = next(flow)
                continue
            try:
                reply = call(*step)
            except WeirError as error:
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result


async def run_async(flow: Flow[T], call: AsyncCall, pause: Callable[[float], Awaitable[object]]) -> T:
    """Carries out the steps of a flow on this loop. What is no error of this package ends the flow."""
    try:
        step = next(flow)
        while True:
            if isinstance(step, Pause):
                await pause(step.seconds)
                step = next(flow)
                continue
            try:
                reply = await call(*step)
            except WeirError as error:
                step = flow.throw(error)
            else:
                step = flow.send(reply)
    except StopIteration as end:
        result: T = end.value
        return result
