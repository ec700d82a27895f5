"""A throttle for Django REST framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string
from rest_framework.exceptions import APIException, PermissionDenied
from rest_framework.throttling import BaseThrottle

from ._decision import Decision
from ._errors import ConfigurationError
from ._middleware import Options
from .django import _settings, client, keep

__all__ = ["Unavailable", "WeirThrottle"]


class Unavailable(APIException):  # type: ignore[misc, unused-ignore]
    """The answer to a request about which nothing can be decided, if the policy is to deny."""

    status_code = 503
    default_detail = "The rate limit cannot be checked"
    default_code = "unavailable"


class WeirThrottle(BaseThrottle):  # type: ignore[misc, unused-ignore]
    """A throttle with a resource: `class SearchThrottle(WeirThrottle): resource = "search"`.

    Allowed answers have the headers if `weir_ratelimit.django.WeirMiddleware` is in MIDDLEWARE.
    """

    #: The resource that is used.
    resource: str = ""
    cost: int = 1
    #: Who uses it: a function, or its dotted name. `WEIR["CONSUMER"]` if not set.
    consumer: str | Callable[[Any], Any] | None = None

    def __init__(self) -> None:
        self._decision: Decision | None = None

    def allow_request(self, request: Any, view: Any) -> bool:
        """Asks. A denial that waiting does not end is 403, and one of the policy 503."""
        weir = client()
        verdict = self._options().judge(weir, request)
        self._decision = verdict.decision
        if verdict.decision is not None:
            keep(request._request, verdict.decision)
        if verdict.status == 403:
            raise PermissionDenied(verdict.text)
        if verdict.status == 503:
            raise Unavailable(verdict.text)
        return verdict.status is None

    def wait(self) -> float | None:
        """Returns the seconds of Retry-After, if waiting helps."""
        retry = self._decision.retry_after if self._decision is not None else None
        return retry.total_seconds() if retry is not None else None

    def _options(self) -> Options:
        given = _settings()
        # A function of the class would be bound to the throttle.
        consumer = type(self).consumer or given.get("CONSUMER")
        if consumer is None:
            raise ConfigurationError(f'{type(self).__name__}.consumer: set it, or WEIR["CONSUMER"]')
        if isinstance(consumer, str):
            consumer = import_string(consumer)
        return Options(
            self.resource,
            consumer,
            cost=self.cost,
            missing=given.get("MISSING", "deny"),
            headers=given.get("HEADERS", True),
            on_mistake=given.get("ON_MISTAKE", "error"),
        )
