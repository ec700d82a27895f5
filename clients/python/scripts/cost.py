"""Prints the CPU time of a decision in the calling process, beside a bare stub: by turns, medians of five.

WEIR_BIN=target/tests/weir PYTHONPATH=clients/python/src python clients/python/scripts/cost.py [threads|asyncio|import]
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

import grpc
import grpc.aio

from weir_ratelimit import AsyncClient, Client
from weir_ratelimit._channel import open_channel
from weir_ratelimit._messages import ShouldAllowRequest, ShouldAllowResponse
from weir_ratelimit._wire import SHOULD_ALLOW
from weir_ratelimit.testing import serve

CONFIG = """
strategies: { all: { limits: [{ name: all, per: [], token_bucket: { rate: 1_000_000/1s, burst: 1_000_000 } }] } }
resources: [{ match: a, strategy: all }]
"""
CALLS = int(os.environ.get("CALLS", "4000"))
TURNS = 5
GRPC = "import grpc"
WEIR = "import weir_ratelimit"


def threads(client: Client, in_flight: int) -> tuple[float, float]:
    """Returns the CPU time of a call in microseconds: the bare stub, and the client."""
    channel = open_channel(grpc, client._core.settings)
    method = channel.unary_unary(SHOULD_ALLOW, ShouldAllowRequest.SerializeToString, ShouldAllowResponse.FromString)

    def bare() -> None:
        assert method(ShouldAllowRequest(resource="a", consumer="bob"), timeout=1).allowed

    def ours() -> None:
        assert client.allow("a", "bob")

    def run(call: Callable[[], None]) -> float:
        def loop() -> None:
            for _ in range(CALLS // in_flight):
                call()

        workers = [threading.Thread(target=loop) for _ in range(in_flight)]
        began = time.process_time()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return (time.process_time() - began) / (CALLS // in_flight * in_flight) * 1e6

    both = [(run(bare), run(ours)) for _ in range(TURNS + 1)][1:]
    channel.close()
    return median(one for one, _ in both), median(one for _, one in both)


async def with_asyncio(client: AsyncClient, in_flight: int) -> tuple[float, float]:
    """Does the same with asyncio."""
    channel = open_channel(grpc.aio, client._core.settings)
    method = channel.unary_unary(SHOULD_ALLOW, ShouldAllowRequest.SerializeToString, ShouldAllowResponse.FromString)

    async def bare() -> None:
        answer = await method(ShouldAllowRequest(resource="a", consumer="bob"), timeout=1)
        assert answer.allowed

    async def ours() -> None:
        assert await client.allow("a", "bob")

    async def run(call: Callable[[], Awaitable[None]]) -> float:
        async def loop() -> None:
            for _ in range(CALLS // in_flight):
                await call()

        began = time.process_time()
        await asyncio.gather(*(loop() for _ in range(in_flight)))
        return (time.process_time() - began) / (CALLS // in_flight * in_flight) * 1e6

    both = [(await run(bare), await run(ours)) for _ in range(TURNS + 1)][1:]
    await channel.close()
    return median(one for one, _ in both), median(one for _, one in both)


def import_times() -> dict[str, float]:
    """Returns the CPU time of imports in milliseconds, above an interpreter that imports nothing."""
    times: dict[str, list[float]] = {code: [] for code in ("pass", GRPC, WEIR)}
    for _ in range(11):
        for code, found in times.items():
            print_time = f"import time; b = time.process_time(); {code}; print(time.process_time() - b)"
            command = [sys.executable, "-c", print_time]
            done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603
            found.append(float(done.stdout) * 1000)
    return {code: median(found) for code, found in times.items()}


def show(what: str, bare: float, ours: float) -> None:
    """Prints one row."""
    print(f"{what}: {ours:.0f} µs beside {bare:.0f}: {ours / bare:.2f} times", flush=True)


def main() -> None:
    """Runs all, or what is named."""
    named: Any = sys.argv[1:] or ["threads", "asyncio", "import"]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(CONFIG)
        config.flush()
        with serve(os.environ.get("WEIR_BIN", "weir"), config.name) as server:
            for in_flight in (1, 64):
                if "threads" in named:
                    with Client(server.address, on_failure="error", timeout=1, telemetry="off") as client:
                        show(f"threads, {in_flight} in flight", *threads(client, in_flight))
                if "asyncio" in named:

                    async def run(in_flight: int = in_flight) -> None:
                        async with AsyncClient(
                            server.address, on_failure="error", timeout=1, telemetry="off"
                        ) as client:
                            show(f"asyncio, {in_flight} in flight", *await with_asyncio(client, in_flight))

                    asyncio.run(run())
    if "import" in named:
        found = import_times()
        print(f"import weir_ratelimit: {found[WEIR]:.0f} ms, import grpc: {found[GRPC]:.0f} ms")


if __name__ == "__main__":
    main()
