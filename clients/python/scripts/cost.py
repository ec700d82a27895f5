"""Prints the CPU time of a decision in the calling process, beside a bare stub: by turns, medians of five.

It takes the names of parts: threads, asyncio, middleware, import.

WEIR_BIN=target/tests/weir PYTHONPATH=clients/python/src python clients/python/scripts/cost.py
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
from flask import Flask
from werkzeug.test import EnvironBuilder

import weir_ratelimit.flask
from weir_ratelimit import AsyncClient, Client, client_address
from weir_ratelimit._channel import open_channel
from weir_ratelimit._messages import ShouldAllowRequest, ShouldAllowResponse
from weir_ratelimit._wire import SHOULD_ALLOW
from weir_ratelimit.asgi import WeirMiddleware
from weir_ratelimit.testing import FakeAsyncClient, FakeClient, serve

CONFIG = """
strategies: { all: { limits: [{ name: all, per: [], token_bucket: { rate: 1_000_000/1s, burst: 1_000_000 } }] } }
resources: [{ match: a, strategy: all }]
"""
CALLS = int(os.environ.get("CALLS", "4000"))
TURNS = 5
HEADERS = {"RateLimit": '"all";r=9;t=1', "RateLimit-Policy": '"all";q=10;w=1'}
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


async def with_asgi() -> tuple[float, float]:
    """Returns the CPU time that the middleware of ASGI adds to a request, and that of `allow` of a fake."""
    fake = FakeAsyncClient()
    fake.script.allow(headers=HEADERS)
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(start)
        await send({"type": "http.response.body", "body": b"hello"})

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        pass

    limited = WeirMiddleware(app, client=fake, resource="a", consumer=client_address(hops=1))
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "client": ("192.0.2.1", 1),
        "headers": [(b"host", b"a"), (b"accept", b"*/*"), (b"x-forwarded-for", b"203.0.113.7")],
    }

    async def run(call: Callable[[], Awaitable[object]]) -> float:
        began = time.process_time()
        for _ in range(CALLS):
            await call()
        return (time.process_time() - began) / CALLS * 1e6

    calls = (lambda: app(scope, receive, send), lambda: limited(dict(scope), receive, send))
    all_turns = [
        [await run(calls[0]), await run(calls[1]), await run(lambda: fake.allow("a", "bob", headers=True))]
        for _ in range(TURNS + 1)
    ]
    return added(all_turns[1:])


def with_flask() -> tuple[float, float]:
    """Does the same with Flask."""
    fake = FakeClient()
    fake.script.allow(headers=HEADERS)
    bare, limited = Flask("bare"), Flask("limited")
    weir_ratelimit.flask.Weir(limited, client=fake, resource="a", consumer=client_address(hops=1))
    for app in (bare, limited):
        app.add_url_rule("/", view_func=lambda: "hello")
    more = {"REMOTE_ADDR": "192.0.2.1"}
    environ = EnvironBuilder("/", headers={"X-Forwarded-For": "203.0.113.7"}, environ_base=more).get_environ()

    def ask(app: Flask) -> None:
        for _ in app.wsgi_app(dict(environ), lambda status, headers, error=None: lambda body: None):
            pass

    def run(call: Callable[[], object]) -> float:
        began = time.process_time()
        for _ in range(CALLS):
            call()
        return (time.process_time() - began) / CALLS * 1e6

    all_turns = [
        [run(lambda: ask(bare)), run(lambda: ask(limited)), run(lambda: fake.allow("a", "bob", headers=True))]
        for _ in range(TURNS + 1)
    ]
    return added(all_turns[1:])


def added(turns: list[list[float]]) -> tuple[float, float]:
    """Returns what a middleware takes beside `allow`, and what `allow` takes: medians of turns."""
    return median(limited - bare - allow for bare, limited, allow in turns), median(allow for _, _, allow in turns)


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
    named: Any = sys.argv[1:] or ["threads", "asyncio", "middleware", "import"]
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
    if "middleware" in named:
        for what, (more, allow) in {"ASGI": asyncio.run(with_asgi()), "Flask": with_flask()}.items():
            print(f"middleware of {what}: {more:.0f} µs beside allow (that of a fake: {allow:.0f})")
    if "import" in named:
        found = import_times()
        print(f"import weir_ratelimit: {found[WEIR]:.0f} ms, import grpc: {found[GRPC]:.0f} ms")


if __name__ == "__main__":
    main()
