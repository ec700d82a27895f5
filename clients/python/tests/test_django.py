"""Middleware of Django, and the throttle of Django REST framework."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import django
import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import AsyncClient as AsyncBrowser
from django.test import Client as Browser
from django.test import override_settings

OPTIONS = {
    "CLIENT": "django_site.weir",
    "ASYNC_CLIENT": "django_site.async_weir",
    "RESOURCE": "api",
    "CONSUMER": "django_site.user_of",
}
settings.configure(
    ROOT_URLCONF="django_site",
    MIDDLEWARE=["weir_ratelimit.django.WeirMiddleware"],
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="tests",
    INSTALLED_APPS=["rest_framework"],
    REST_FRAMEWORK={"UNAUTHENTICATED_USER": None},
    WEIR=OPTIONS,
    LOGGING_CONFIG=None,
)
django.setup()

import django_site  # noqa: E402

from weir_ratelimit import AsyncClient, Client, ConfigurationError  # noqa: E402
from weir_ratelimit import django as weir_django  # noqa: E402

HEADERS = {"RateLimit": '"each";r=1'}
USER = {"x-user": "bob"}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    for weir in (django_site.weir, django_site.async_weir):
        weir.script.clear()
        weir.asked.clear()
        weir.on_failure = "error"
    django_site.reached.clear()


def get(path: str = "/", headers: dict[str, str] = USER, **options: Any) -> Any:
    return Browser(raise_request_exception=False).get(path, headers=headers, **options)


def get_async(path: str = "/", headers: dict[str, str] = USER) -> Any:
    return asyncio.run(AsyncBrowser(raise_request_exception=False).get(path, headers=headers))


@pytest.mark.parametrize("ask", [get, get_async])
@pytest.mark.parametrize(
    ("path", "status"), [("/", 200), ("/async", 200), ("/stream", 200), ("/none", 404), ("/broken", 500)]
)
def test_c36_headers_on_every_kind_of_answer(ask: Any, path: str, status: int) -> None:
    for weir in (django_site.weir, django_site.async_weir):
        weir.script.allow(headers=HEADERS)
    answer = ask(path)
    assert (answer.status_code, answer["RateLimit"]) == (status, HEADERS["RateLimit"])
    asked = django_site.weir.asked if ask is get else django_site.async_weir.asked
    assert [(one.resource, one.consumer, one.id) for one in asked] == [("api", "bob", None)]


@pytest.mark.parametrize("ask", [get, get_async])
def test_c37_c38_denied(ask: Any) -> None:
    for weir in (django_site.weir, django_site.async_weir):
        weir.script.deny(retry_after=timedelta(seconds=3.2), headers=HEADERS, message="no", times=1)
    answer = ask()
    assert (answer.status_code, answer.content, answer["Retry-After"]) == (429, b"no\n", "4")
    for weir in (django_site.weir, django_site.async_weir):
        weir.on_failure = "deny"
        weir.script.clear().away()
    answer = ask()
    assert answer.status_code == 503 and "RateLimit" not in answer
    assert django_site.reached == []
    assert ask(headers={}).status_code == 403


def test_c39_preflight_and_skip() -> None:
    django_site.weir.script.deny()
    preflight = {"origin": "http://a", "access-control-request-method": "GET"}
    assert Browser().options("/", headers=preflight).status_code == 200
    assert Browser().options("/", headers=USER).status_code == 429
    with override_settings(WEIR={**OPTIONS, "SKIP": lambda request: request.path == "/"}):
        assert get().status_code == 200


def test_hold_and_own_answers() -> None:
    for weir in (django_site.weir, django_site.async_weir):
        weir.script.allow(wait=timedelta(milliseconds=1))
    assert get().status_code == get_async().status_code == 200
    for weir in (django_site.weir, django_site.async_weir):
        weir.script.deny(headers=HEADERS)
    with override_settings(
        WEIR={**OPTIONS, "ON_DENIED": lambda decision, _: HttpResponse(decision.reason, status=418)}
    ):
        for answer in (get(), get_async()):
            assert (answer.status_code, answer["RateLimit"]) == (418, HEADERS["RateLimit"])


def test_drf_throttles() -> None:
    weir = django_site.weir
    with override_settings(WEIR={name: value for name, value in OPTIONS.items() if name != "RESOURCE"}):
        weir.script.allow(headers=HEADERS)
        answer = get("/search")
        assert (answer.status_code, answer["RateLimit"]) == (200, HEADERS["RateLimit"])
        assert [(one.resource, one.consumer) for one in weir.asked] == [("search", "bob")]
        weir.script.deny(retry_after=timedelta(seconds=3.2), headers=HEADERS)
        answer = get("/search")
        assert (answer.status_code, answer["Retry-After"], answer["RateLimit"]) == (429, "4", HEADERS["RateLimit"])
        weir.script.deny()
        assert "Retry-After" not in get("/search")
        for reason in ("never", "deny_list"):
            weir.script.deny(reason=reason)
            assert get("/search").status_code == 403
        weir.on_failure = "deny"
        weir.script.away()
        answer = get("/search")
        assert answer.status_code == 503 and "RateLimit" not in answer
        assert get("/search", headers={}).status_code == 403


@pytest.mark.parametrize(
    "options",
    [None, {}, {"TARGET": "weir:8081"}, {**OPTIONS, "RESOURCES": "api"}, {"TARGET": "weir:8081", "ON_FAILURE": "open"}],
)
def test_wrong_settings(options: Any) -> None:
    with override_settings(WEIR=options), pytest.raises(ConfigurationError):
        weir_django.client()


def test_clients_are_made_once_from_the_settings() -> None:
    options = {"TARGET": "127.0.0.1:1", "ON_FAILURE": "allow", "TIMEOUT": 0.2}
    with override_settings(WEIR=options):
        client = weir_django.client()
        assert isinstance(client, Client) and weir_django.client() is client
        assert isinstance(weir_django.async_client(), AsyncClient)
        assert client._core.settings.timeout == 0.2
    with override_settings(WEIR={**OPTIONS, "CLIENT": "django_site.async_weir"}), pytest.raises(ConfigurationError):
        weir_django.client()
