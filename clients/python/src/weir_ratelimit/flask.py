"""An extension for Flask."""

from __future__ import annotations

import time
from typing import Any, Unpack

from flask import Flask, Response, g, request

from ._middleware import Consumer, More, Options, Resource, check_client, is_preflight

__all__ = ["Weir"]


class Weir:
    """Asks about each request of an application, and writes the headers of the decision on every answer."""

    def __init__(
        self, app: Flask | None = None, *, client: Any, resource: Resource, consumer: Consumer, **options: Unpack[More]
    ) -> None:
        check_client(client, asynchronous=False)
        self._client = client
        self._options = Options(resource, consumer, **options)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Adds this to an application."""
        app.before_request(self._ask)
        app.after_request(self._write)

    def _ask(self) -> Any:
        has = request.headers
        if is_preflight(request.method, "Origin" in has, "Access-Control-Request-Method" in has):
            return None
        verdict = self._options.judge(self._client, request)
        g.weir_verdict = verdict
        if verdict.status is None:
            if self._options.hold and verdict.hold > 0:
                time.sleep(verdict.hold)
            return None
        if self._options.on_denied is not None and verdict.decision is not None:
            return self._options.on_denied(verdict.decision)
        return Response(f"{verdict.text}\n", verdict.status, mimetype="text/plain")

    def _write(self, response: Response) -> Response:
        verdict = g.get("weir_verdict")
        if verdict is not None:
            for name, value in verdict.headers.items():
                response.headers[name] = value
        return response
