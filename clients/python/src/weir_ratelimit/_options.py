"""Options of a client. Wrong ones fail at once, in the constructor."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import grpc

from ._errors import ConfigurationError
from ._target import Target, parse_target

Policy = Literal["allow", "deny", "error"]
Token = str | Callable[[], str] | None

_POLICIES = get_args(Policy)
#: Longer times are mistakes of units.
LONGEST_TIMEOUT = 3600.0


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS: names of PEM files, or their bytes. `Tls()` trusts the authorities of gRPC. Nothing is ever unverified."""

    #: The authorities that may have signed the certificate of the server.
    roots: str | os.PathLike[str] | bytes | None = None
    #: The client's own certificate, with its chain.
    certificate: str | os.PathLike[str] | bytes | None = None
    key: str | os.PathLike[str] | bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Options that were checked."""

    target: Target
    on_failure: Policy
    timeout: float
    credentials: Any = field(repr=False)
    token: Token = field(repr=False)
    breaker: bool
    ejection: bool
    strategy: str | None
    telemetry: bool


def settings_of(
    target: str,
    on_failure: object,
    timeout: timedelta | float,
    tls: Tls | None,
    token: Token,
    insecure_token: bool,
    breaker: bool,
    ejection: bool,
    strategy: str | None,
    telemetry: str,
) -> Settings:
    """Checks options."""
    if not is_policy(on_failure):
        raise ConfigurationError(f'on_failure: {on_failure!r} is not "allow", "deny" or "error"')
    seconds = seconds_of(timeout)
    if seconds is None:
        raise ConfigurationError(f"timeout: {timeout!r} is not a time above 0 s and at most {LONGEST_TIMEOUT} s")
    flags = {"insecure_token": insecure_token, "breaker": breaker, "ejection": ejection}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ConfigurationError(f"{name}: {value!r} is not True or False")
    if strategy is not None and not isinstance(strategy, str):
        raise ConfigurationError(f"strategy: {strategy!r} is not a text")
    if telemetry not in ("auto", "off"):
        raise ConfigurationError(f'telemetry: {telemetry!r} is not "auto" or "off"')
    parsed = parse_target(target)
    _check_token(token, tls, insecure_token, parsed)
    policy: Policy = on_failure  # type: ignore[assignment]
    return Settings(parsed, policy, seconds, _credentials(tls), token, breaker, ejection, strategy, telemetry == "auto")


def is_policy(value: object) -> bool:
    """Returns whether a value is one of the policies."""
    return isinstance(value, str) and value in _POLICIES


def seconds_of(time: object) -> float | None:
    """Returns a time in seconds, or nothing if it is no time that a decision may take."""
    if isinstance(time, timedelta):
        time = time.total_seconds()
    if isinstance(time, bool) or not isinstance(time, int | float):
        return None
    return float(time) if 0 < time <= LONGEST_TIMEOUT else None


def is_token(value: object) -> bool:
    """Returns whether a value can be sent as a token."""
    return isinstance(value, str) and re.fullmatch(r"[\x21-\x7e]+", value) is not None


def _check_token(token: object, tls: Tls | None, insecure: bool, target: Target) -> None:
    """Checks where a token would go. Its value is never part of a text."""
    if token is None:
        return
    if not callable(token) and not is_token(token):
        raise ConfigurationError("token: not a text of visible ASCII characters, and not a function")
    if tls is None and not target.loopback and not insecure:
        raise ConfigurationError(
            f"token: it would be sent in plain text to {target.text}; set tls, or insecure_token=True if the"
            " network is trusted"
        )


def _credentials(tls: Tls | None) -> Any:
    if tls is None:
        return None
    if not isinstance(tls, Tls):
        raise ConfigurationError("tls: not a Tls with roots, certificate and key")
    if (tls.certificate is None) != (tls.key is None):
        raise ConfigurationError("tls: certificate and key are set together or not at all")
    read = {name: _read(name, getattr(tls, name)) for name in ("roots", "key", "certificate")}
    return grpc.ssl_channel_credentials(read["roots"], read["key"], read["certificate"])


def _read(name: str, file: str | os.PathLike[str] | bytes | None) -> bytes | None:
    if file is None or isinstance(file, bytes):
        return file
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"tls.{name}: {error}") from error
