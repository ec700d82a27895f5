"""ASGI middleware and the dependency of FastAPI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI, Request, WebSocket
from starlette.responses import PlainTextResponse, Response, StreamingResponse

import weir_ratelimit
from weir_ratelimit import ConfigurationError, client_address
from weir_ratelimit.asgi import WeirMiddleware
from weir_ratelimit.fastapi import limit
from weir_ratelimit.testing import FakeAsyncClient, FakeClient

HEADERS = {"RateLimit": '"each";r=1'}


def app_with(weir: FakeAsyncClient, **options: Any) -> FastAPI:
    app = FastAPI()
    app.state.reached = []
    options = {"client": weir, "resource": "api", "consumer": lambda request: request.header("x-user"), **options}
    app.add_middleware(WeirMiddleware, **options)

    @app.get("/")
    async def index(request: Request) -> str:
        app.state.reached.append(request.url.path)
        return "hello"

    @app.post("/")
    async def read(request: Request) -> str:
        app.state.reached.append(await request.body())
        return "read"

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def parts() -> AsyncIterator[str]:
            yield "a"
            yield "b"

        return StreamingResponse(parts())

    @app.get("/empty", status_code=204, response_model=None)
    async def empty() -> None: ...

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("broken")

    @app.websocket("/ws")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        app.state.reached.append("ws")

    return app


async def get(app: Any, path: str = "/", method: str = "GET", **options: Any) -> httpx.Response:
    headers = {"X-User": "bob", **options.pop("headers", {})}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=("10.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        return await http.request(method, path, headers=headers, **options)


@pytest.mark.parametrize(
    ("path", "status"), [("/", 200), ("/stream", 200), ("/empty", 204), ("/none", 404), ("/broken", 500)]
)
async def test_c36_headers_on_every_kind_of_answer(path: str, status: int) -> None:
    weir = FakeAsyncClient()
    weir.script.allow(headers=HEADERS)
    answer = await get(app_with(weir), path)
    assert (answer.status_code, answer.headers["ratelimit"]) == (status, HEADERS["RateLimit"])


async def test_c36_the_own_page_of_the_application() -> None:
    weir = FakeAsyncClient()
    weir.script.allow(headers=HEADERS)
    app = app_with(weir)

    @app.exception_handler(Exception)
    async def page(_: Request, error: Exception) -> Response:
        return PlainTextResponse(f"own {error}", 500, {"RateLimit": "overwritten"})

    answer = await get(app, "/broken")
    assert (answer.status_code, answer.text) == (500, "own broken")
    assert answer.headers.get_list("ratelimit") == [HEADERS["RateLimit"]]


async def test_c37_c38_denied() -> None:
    weir = FakeAsyncClient(on_failure="deny")
    weir.script.deny(retry_after=timedelta(seconds=3.2), message="Try again in 4 seconds", headers=HEADERS)
    app = app_with(weir)
    answer = await get(app, method="POST", content=b"body")
    assert (answer.status_code, answer.text) == (429, "Try again in 4 seconds\n")
    assert (answer.headers["retry-after"], answer.headers["ratelimit"]) == ("4", HEADERS["RateLimit"])
    weir.script.deny(reason="never", headers=HEADERS)
    answer = await get(app)
    assert answer.status_code == 403 and "retry-after" not in answer.headers
    weir.script.away()
    answer = await get(app)
    assert answer.status_code == 503
    assert not {"ratelimit", "retry-after"} & set(answer.headers)
    assert app.state.reached == []


async def test_c38_the_body_of_a_denied_request_stays_unread() -> None:
    weir = FakeAsyncClient()
    weir.script.deny()
    sent = []

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        sent.append(message["type"])

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"x-user", b"bob")]}
    await _middleware(weir)(scope, receive, send)
    assert sent == ["http.response.start", "http.response.body"]


def _middleware(weir: FakeAsyncClient, **options: Any) -> WeirMiddleware:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the handler ran")

    options = {"consumer": lambda request: request.header("x-user"), **options}
    return WeirMiddleware(app, client=weir, resource="api", **options)


async def test_c18_questions() -> None:
    weir = FakeAsyncClient()
    options: dict[str, Any] = {"resource": lambda request: request.path, "cost": lambda request: len(request.path)}
    options["attributes"] = lambda request: {"method": request.method}

    async def consumer(request: Any) -> str:
        await asyncio.sleep(0)
        return str(request.header("x-user"))

    await get(
        app_with(weir, consumer=consumer, **options), "/none", headers={"X-Request-Id": "1", "Idempotency-Key": "2"}
    )
    asked = weir.asked[0]
    assert (asked.resource, asked.consumer, asked.cost, asked.attributes) == ("/none", "bob", 5, {"method": "GET"})
    assert asked.id is None and asked.headers


async def test_c39_what_passes_unasked() -> None:
    weir = FakeAsyncClient()
    weir.script.deny()
    app = app_with(weir, skip=lambda request: request.path == "/")
    assert (await get(app)).status_code == 200
    preflight = {"Origin": "http://a", "Access-Control-Request-Method": "GET"}
    assert (await get(app, "/stream", "OPTIONS", headers=preflight)).status_code == 405
    assert weir.asked == []
    assert (await get(app, "/stream", "OPTIONS")).status_code == 429
    messages = iter([{"type": "websocket.connect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(_: Any) -> None: ...

    scope = {"type": "websocket", "path": "/ws", "headers": [], "query_string": b"", "subprotocols": []}
    await app({**scope, "client": None, "server": None, "scheme": "ws", "root_path": ""}, receive, send)
    assert "ws" in app.state.reached


@pytest.mark.parametrize(
    ("missing", "status", "asked"), [("deny", 403, []), ("skip", 200, []), ("nobody", 200, ["nobody"])]
)
@pytest.mark.parametrize("user", ["", "x" * 513, "é" * 257])
async def test_missing_consumers(missing: str, status: int, asked: list[str], user: str) -> None:
    weir = FakeAsyncClient()
    answer = await get(app_with(weir, missing=missing, consumer=lambda _: user or None))
    assert answer.status_code == status
    assert [question.consumer for question in weir.asked] == asked


async def test_long_attributes_are_missing() -> None:
    weir = FakeAsyncClient()
    assert (await get(app_with(weir, attributes=lambda _: {"a": "x" * 513}))).status_code == 403


async def test_mistakes() -> None:
    weir = FakeAsyncClient(on_failure="allow")
    weir.script.mistake("NOT_FOUND")
    assert (await get(app_with(weir))).status_code == 500
    assert (await get(app_with(weir, on_mistake="policy"))).status_code == 200
    weir.on_failure = "error"
    assert (await get(app_with(weir, on_mistake="policy"))).status_code == 500


async def test_own_answers_and_no_headers() -> None:
    weir = FakeAsyncClient()
    weir.script.deny(headers=HEADERS)
    own = app_with(
        weir, on_denied=lambda decision, request: PlainTextResponse(f"{decision.reason} {request.path}", 418)
    )
    answer = await get(own)
    assert (answer.status_code, answer.text, answer.headers["ratelimit"]) == (418, "limited /", HEADERS["RateLimit"])
    assert "ratelimit" not in (await get(app_with(weir, headers=False))).headers


async def test_c40_hold() -> None:
    weir = FakeAsyncClient()
    weir.script.allow(wait=timedelta(milliseconds=50))
    app = app_with(weir)
    started = asyncio.get_running_loop().time()
    assert (await get(app, method="POST", content=b"body")).text == '"read"'
    assert asyncio.get_running_loop().time() - started >= 0.05
    assert app.state.reached == [b"body"]
    weir.script.allow(wait=timedelta(hours=1))
    assert (await get(app_with(weir, hold=False))).status_code == 200


async def test_c40_a_caller_that_leaves_never_reaches_the_handler() -> None:
    weir = FakeAsyncClient()
    weir.script.allow(wait=timedelta(hours=1))
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"x-user", b"bob")]}
    await _middleware(weir)(scope, receive, send)


async def test_the_dependency_of_fastapi() -> None:
    weir = FakeAsyncClient()
    weir.script.allow(headers=HEADERS)

    def application(*, with_middleware: bool) -> FastAPI:
        app = FastAPI()
        if with_middleware:
            app.add_middleware(WeirMiddleware)
        ask = limit(weir, "search", consumer=client_address())
        app.get("/search", dependencies=[Depends(ask)])(lambda: "found")
        return app

    assert (await get(application(with_middleware=True), "/search")).headers["ratelimit"] == HEADERS["RateLimit"]
    assert "ratelimit" not in (await get(application(with_middleware=False), "/search")).headers
    assert weir.asked[0].consumer == "10.0.0.1"
    weir.script.deny(retry_after=timedelta(seconds=1), headers=HEADERS, message="no")
    for with_middleware in (True, False):
        answer = await get(application(with_middleware=with_middleware), "/search")
        assert (answer.status_code, answer.json()) == (429, {"detail": "no"})
        assert answer.headers.get_list("ratelimit") == [HEADERS["RateLimit"]]
        assert answer.headers.get_list("retry-after") == ["1"]


def test_wrong_options() -> None:
    async def app(*_: Any) -> None: ...

    wrong: list[dict[str, Any]] = [
        {"client": FakeClient(), "resource": "api", "consumer": str},
        {"client": None, "resource": "api", "consumer": str},
        {"client": FakeAsyncClient(), "resource": "", "consumer": str},
        {"client": FakeAsyncClient(), "consumer": str},
        {"client": FakeAsyncClient(), "resource": "api"},
        {"client": FakeAsyncClient(), "resource": "api", "consumer": str, "missing": ""},
        {"client": FakeAsyncClient(), "resource": "api", "consumer": str, "on_mistake": "deny"},
    ]
    for options in wrong:
        with pytest.raises(ConfigurationError):
            WeirMiddleware(app, **options)
    with pytest.raises(ConfigurationError, match="block the loop"):
        limit(weir_ratelimit.Client("localhost:1", on_failure="allow"), "search", consumer=str)
