"""The options of both clients."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from ._core import Core
from ._options import Policy, Tls, Token, settings_of


class BaseClient:
    """A client without its calls."""

    def __init__(
        self,
        target: str,
        *,
        on_failure: Policy,
        timeout: timedelta | float = 0.1,
        tls: Tls | None = None,
        token: Token = None,
        insecure_token: bool = False,
        breaker: bool = True,
        ejection: bool = True,
        strategy: str | None = None,
        telemetry: Literal["auto", "off"] = "auto",
    ) -> None:
        settings = settings_of(
            target, on_failure, timeout, tls, token, insecure_token, breaker, ejection, strategy, telemetry
        )
        self._core = Core(settings)
        self._start()

    def _start(self) -> None:
        """Makes what a client has of its own. Nothing connects before the first call."""

    @property
    def on_failure(self) -> Policy:
        """What an outage answers where a question does not say."""
        return self._core.settings.on_failure
