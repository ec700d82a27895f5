"""Middleware for Django, for threads and for asyncio. Its options are the setting `WEIR`."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpResponse
from django.utils.module_loading import import_string

from ._async_client import AsyncClient
from ._client import Client
from ._errors import ConfigurationError
from ._middleware import Options, Verdict, check_client, is_preflight, verdict_of

__all__ = ["WeirMiddleware", "async_client", "client", "keep"]

_OF_CLIENT = ("ON_FAILURE", "TIMEOUT", "TLS", "TOKEN", "INSECURE_TOKEN", "BREAKER", "EJECTION", "STRATEGY", "TELEMETRY")
_OF_MIDDLEWARE = (
    "RESOURCE",
    "CONSUMER",
    "COST",
    "ATTRIBUTES",
    "SKIP",
    "MISSING",
    "HEADERS",
    "HOLD",
    "ON_DENIED",
    "ON_MISTAKE",
)
_FUNCTIONS = ("CONSUMER", "ATTRIBUTES", "SKIP", "ON_DENIED")
#: Where a request keeps its verdict.
_VERDICT = "_weir_verdict"

_lock = threading.Lock()
_clients: dict[type, tuple[Any, Any]] = {}


def client() -> Any:
    """Returns the client for threads of this process: `WEIR["CLIENT"]`, or one of the other settings."""
    return _client(Client)


def async_client() -> Any:
    """Returns the client for asyncio of this process: `WEIR["ASYNC_CLIENT"]`, or one of the other settings."""
    return _client(AsyncClient)


def keep(request: Any, decision: Any) -> None:
    """Keeps a decision on the request: the middleware writes its headers."""
    setattr(request, _VERDICT, verdict_of(decision, bool(_settings().get("HEADERS", True))))


def _client(kind: type[Client] | type[AsyncClient]) -> Any:
    given = _settings()
    own = given.get("CLIENT" if kind is Client else "ASYNC_CLIENT")
    if own is not None:
        found = import_string(own) if isinstance(own, str) else own
        check_client(found, asynchronous=kind is AsyncClient)
        return found
    with _lock:
        made_of, made = _clients.get(kind, (None, None))
        if made_of is not given:
            if "TARGET" not in given:
                raise ConfigurationError('WEIR["TARGET"]: required, such as "weir:8081"')
            options = {name.lower(): given[name] for name in _OF_CLIENT if name in given}
            options.setdefault("on_failure", None)
            made = kind(given["TARGET"], **options)
            _clients[kind] = (given, made)
        return made


def _settings() -> dict[str, Any]:
    given = getattr(settings, "WEIR", None)
    if not isinstance(given, dict):
        raise ConfigurationError('WEIR: required in the settings, with "TARGET" and "ON_FAILURE"')
    known = {"TARGET", "CLIENT", "ASYNC_CLIENT", *_OF_CLIENT, *_OF_MIDDLEWARE}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ConfigurationError(f"WEIR[{unknown[0]!r}]: not one of {', '.join(sorted(known))}")
    return given


def _options() -> Options | None:
    """Returns the options, or nothing if the middleware only writes headers of decisions of throttles."""
    given = {name: value for name, value in _settings().items() if name in _OF_MIDDLEWARE}
    if "RESOURCE" not in given:
        return None
    for name in _FUNCTIONS:
        if isinstance(given.get(name), str):
            given[name] = import_string(given[name])
    return Options(**{"consumer": None, **{name.lower(): value for name, value in given.items()}})


class WeirMiddleware:
    """Asks about each request, and writes the headers of the decision on every answer."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self._get_response = get_response
        self._options = _options()
        self._is_async = bool(iscoroutinefunction(get_response))
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        if self._is_async:
            return self._answer_async(request)
        options = self._options
        if options is None or _is_preflight(request):
            return _with_headers(request, self._get_response(request))
        verdict = options.judge(client(), request)
        setattr(request, _VERDICT, verdict)
        if verdict.status is not None:
            return _with_headers(request, self._denial(request, verdict))
        if options.hold and verdict.hold > 0:
            time.sleep(verdict.hold)
        return _with_headers(request, self._get_response(request))

    async def _answer_async(self, request: Any) -> Any:
        options = self._options
        if options is None or _is_preflight(request):
            return _with_headers(request, await self._get_response(request))
        verdict = await options.judge_async(async_client(), request)
        setattr(request, _VERDICT, verdict)
        if verdict.status is not None:
            response = self._denial(request, verdict)
            return _with_headers(request, await response if inspect.isawaitable(response) else response)
        if options.hold and verdict.hold > 0:
            # Django cancels this when the caller leaves.
            await asyncio.sleep(verdict.hold)
        return _with_headers(request, await self._get_response(request))

    def _denial(self, request: Any, verdict: Verdict) -> Any:
        own = self._options.on_denied if self._options is not None else None
        if own is not None and verdict.decision is not None:
            return own(verdict.decision, request)
        return HttpResponse(f"{verdict.text}\n", status=verdict.status, content_type="text/plain; charset=utf-8")


def _with_headers(request: Any, response: Any) -> Any:
    verdict = getattr(request, _VERDICT, None)
    if verdict is not None:
        for name, value in verdict.headers.items():
            response[name] = value
    return response


def _is_preflight(request: Any) -> bool:
    has = request.META.get
    return is_preflight(request.method, bool(has("HTTP_ORIGIN")), bool(has("HTTP_ACCESS_CONTROL_REQUEST_METHOD")))
