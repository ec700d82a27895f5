"""The extension for Flask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask, Response

from weir_ratelimit import ConfigurationError, client_address
from weir_ratelimit.flask import Weir
from weir_ratelimit.testing import FakeAsyncClient, FakeClient

HEADERS = {"RateLimit": '"each";r=1'}


def browser_of(weir: FakeClient, **options: Any) -> Any:
    app = Flask(__name__)
    reached: list[str] = []
    Weir(app, client=weir, resource="api", **{"consumer": client_address(hops=1), **options})

    @app.get("/")
    def index() -> str:
        reached.append("/")
        return "hello"

    @app.get("/stream")
    def stream() -> Response:
        def parts() -> Iterator[str]:
            yield "a"
            yield "b"

        return Response(parts())

    @app.get("/broken")
    def broken() -> str:
        raise RuntimeError("broken")

    browser = app.test_client()
    browser.reached = reached  # type: ignore[attr-defined]
    return browser


@pytest.mark.parametrize(("path", "status"), [("/", 200), ("/stream", 200), ("/none", 404), ("/broken", 500)])
def test_c36_headers_on_every_kind_of_answer(path: str, status: int) -> None:
    weir = FakeClient()
    weir.script.allow(headers=HEADERS)
    answer = browser_of(weir).get(path, headers={"X-Forwarded-For": "6.6.6.6, 1.1.1.1", "X-Request-Id": "1"})
    assert (answer.status_code, answer.headers["RateLimit"]) == (status, HEADERS["RateLimit"])
    assert [(one.consumer, one.id) for one in weir.asked] == [("1.1.1.1", None)]


def test_c37_c38_c39_denied() -> None:
    weir = FakeClient(on_failure="deny")
    weir.script.deny(retry_after=timedelta(seconds=3.2), headers=HEADERS, message="no")
    browser = browser_of(weir)
    answer = browser.get("/")
    assert (answer.status_code, answer.text, answer.headers["Retry-After"]) == (429, "no\n", "4")
    preflight = {"Origin": "http://a", "Access-Control-Request-Method": "GET"}
    assert browser.options("/", headers=preflight).status_code == 200
    assert browser.options("/").status_code == 429
    weir.script.away()
    answer = browser.get("/")
    assert answer.status_code == 503 and "RateLimit" not in answer.headers
    assert browser.reached == []
    own = browser_of(weir, on_denied=lambda decision: (decision.reason, 418), consumer=lambda _: "bob")
    assert own.get("/").status_code == 418
    assert browser_of(weir, consumer=lambda _: None).get("/").status_code == 403


def test_hold() -> None:
    weir = FakeClient()
    weir.script.allow(wait=timedelta(milliseconds=1))
    assert browser_of(weir).get("/").status_code == 200


def test_a_client_of_asyncio_does_not_fit() -> None:
    with pytest.raises(ConfigurationError):
        Weir(client=FakeAsyncClient(), resource="api", consumer=client_address())
