"""Middleware for ASGI: FastAPI, Starlette, and any other application."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from ._errors import ConfigurationError
from ._middleware import Consumer, Function, Options, Resource, Verdict, check_client, is_preflight, verdict_of

# Frameworks differ in how they name the types of mappings.
Scope = Any
Message = Any
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Where a request keeps its decision, for the middleware.
STATE = "weir_ratelimit"


class Request:
    """What functions of the options get: the scope, and what most of them read."""

    __slots__ = ("scope",)

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    def header(self, name: str) -> str | None:
        """Returns a header. Several lines of it are joined with commas."""
        wanted = name.lower().encode("latin-1")
        lines = [value.decode("latin-1") for key, value in self.scope["headers"] if key == wanted]
        return ", ".join(lines) if lines else None


class WeirMiddleware:
    """Asks about each request, and writes the headers of the decision on every answer.

    Without `resource` it asks nothing itself, and writes the headers of decisions of `weir_ratelimit.fastapi.limit`.
    """

    def __init__(
        self,
        app: App,
        *,
        client: Any = None,
        resource: Resource | None = None,
        consumer: Consumer | None = None,
        cost: int | Function = 1,
        attributes: Function | None = None,
        skip: Function | None = None,
        missing: str = "deny",
        headers: bool = True,
        hold: bool = True,
        on_denied: Callable[..., Any] | None = None,
        on_mistake: Literal["error", "policy"] = "error",
    ) -> None:
        self._app, self._client = app, client
        self._options: Options | None = None
        if resource is None:
            if client is not None or consumer is not None:
                raise ConfigurationError("resource: required, a text or a function")
            return
        check_client(client, asynchronous=True)
        checked = (cost, attributes, skip, missing, headers, hold, on_denied, on_mistake)
        self._options = Options(resource, consumer, *checked)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault(STATE, {})
        request = Request(scope)
        if self._options is None or _is_preflight(request):
            await self._pass(scope, receive, _Answer(send, state))
            return
        verdict = await self._options.judge_async(self._client, request)
        state["verdict"] = verdict
        answer = _Answer(send, state)
        if verdict.status is not None:
            await self._deny(verdict, scope, receive, answer)
            return
        if self._options.hold and verdict.hold > 0:
            held = _Held(receive)
            if not await held.wait(verdict.hold):
                return
            receive = held.receive
        await self._pass(scope, receive, answer)

    async def _deny(self, verdict: Verdict, scope: Scope, receive: Receive, answer: _Answer) -> None:
        options = self._options
        if options is not None and options.on_denied is not None and verdict.decision is not None:
            await options.on_denied(verdict.decision, Request(scope))(scope, receive, answer.send)
            return
        body = f"{verdict.text}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
        await answer.send({"type": "http.response.start", "status": verdict.status, "headers": headers})
        await answer.send({"type": "http.response.body", "body": body})

    async def _pass(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            await self._app(scope, receive, answer.send)
        except Exception as error:
            page = _error_page(scope, error)
            if page is None or answer.started:
                raise
            # It writes the page of the framework through this middleware, and raises the error again.
            await page(scope, receive, answer.send)


class _Answer:
    """Writes the headers of the decision into an answer."""

    def __init__(self, send: Send, state: dict[str, Any]) -> None:
        self._send, self._state = send, state
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            verdict = self._state.get("verdict")
            if verdict is not None and verdict.headers:
                own = {name.lower().encode("latin-1"): value for name, value in verdict.headers.items()}
                kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in own]
                written = [(name, value.encode("latin-1")) for name, value in own.items()]
                message = {**message, "headers": [*kept, *written]}
        await self._send(message)


class _Held:
    """Holds a request, and notices when its caller leaves meanwhile."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._next: asyncio.Future[Message] | None = None
        self._read: list[Message] = []

    async def wait(self, seconds: float) -> bool:
        """Returns whether the caller is still there. What it has sent meanwhile, at most two messages, is kept."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while len(self._read) < 2:
            self._next = asyncio.ensure_future(self._receive())
            done, _ = await asyncio.wait([self._next], timeout=max(0.0, end - loop.time()))
            if not done:
                return True
            message = self._next.result()
            self._next = None
            if message["type"] == "http.disconnect":
                return False
            self._read.append(message)
        await asyncio.sleep(max(0.0, end - loop.time()))
        return True

    async def receive(self) -> Message:
        if self._read:
            return self._read.pop(0)
        waiting, self._next = self._next, None
        return await (waiting if waiting is not None else self._receive())


def keep(scope: Scope, decision: Any, headers: bool) -> None:
    """Keeps a decision on the request, for the middleware."""
    state = scope.get(STATE)
    if state is not None:
        state["verdict"] = verdict_of(decision, headers)


def _is_preflight(request: Request) -> bool:
    has = request.header
    return is_preflight(request.method, has("origin") is not None, has("access-control-request-method") is not None)


def _error_page(scope: Scope, error: Exception) -> App | None:
    """Returns Starlette's own answer to an error. It is written outside all middleware, where it gets no headers."""
    errors = sys.modules.get("starlette.middleware.errors")
    app = scope.get("app")
    handlers = getattr(app, "exception_handlers", None)
    if errors is None or handlers is None:
        return None

    async def fail(*_: Any) -> None:
        raise error

    handler = handlers.get(500) or handlers.get(Exception)
    page: App = errors.ServerErrorMiddleware(fail, handler=handler, debug=getattr(app, "debug", False))
    return page
