"""Decisions and failures from what gRPC gives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from google.protobuf.message import DecodeError

from ._codes import MISTAKES
from ._decision import Decision, LimitStatus
from ._errors import MistakeError, OutageError
from ._messages import REASONS, BadRequest, RichStatus, ShouldAllowResponse

SHOULD_ALLOW = "/weir.v1.RateLimitService/ShouldAllow"


def decision_of(message: bytes) -> Decision:
    """Reads the decision that a server sent."""
    try:
        answer = ShouldAllowResponse.FromString(message)
    except DecodeError as error:
        raise OutageError("INTERNAL", "the answer is no message", error) from error
    has = answer.HasField
    headers, limits = answer.headers, answer.limits
    return Decision(
        answer.allowed,
        "weir",
        REASONS.get(answer.reason, "unknown"),
        degraded=answer.degraded,
        limit=answer.limit if has("limit") else None,
        remaining=answer.remaining if has("remaining") else None,
        retry_after=time_of(answer.retry_after) if has("retry_after") else None,
        reset_after=time_of(answer.reset_after) if has("reset_after") else None,
        wait=time_of(answer.wait) if has("wait") else None,
        granted=answer.granted if has("granted") else None,
        applied=answer.applied if has("applied") else None,
        denied_by=tuple(answer.denied_by),
        limits=tuple(map(_limit, limits)) if limits else (),
        binding=answer.binding or None,
        message=answer.message or None,
        headers=dict(headers) if headers else {},
        local=answer.local,
        approximate=answer.approximate,
    )


def _limit(limit: Any) -> LimitStatus:
    return LimitStatus(
        limit.name,
        limit.allowed,
        limit.limit,
        limit.remaining,
        time_of(limit.retry_after) if limit.HasField("retry_after") else None,
        time_of(limit.reset_after) if limit.HasField("reset_after") else None,
        limit.cause or None,
    )


def time_of(duration: Any) -> timedelta:
    """Returns a time, in whole microseconds as Weir sends it."""
    return timedelta(0, duration.seconds, duration.nanos // 1000)


def failure_of(error: Any) -> OutageError | MistakeError:
    """Returns what a failed call means. A code that is not known is an outage."""
    code = error.code()
    name = code.name if code is not None else "UNKNOWN"
    text = error.details() or "no details"
    if name in MISTAKES:
        return MistakeError(name, text, _field_of(error.trailing_metadata()), error)
    return OutageError("UNKNOWN" if name == "OK" else name, text, error)


def _field_of(metadata: Any) -> str | None:
    """Returns the field that the server names. Details that cannot be read are no reason to hide the mistake."""
    try:
        for name, value in metadata or ():
            if name != "grpc-status-details-bin":
                continue
            for detail in RichStatus.FromString(value).details:
                if detail.type_url.endswith("/google.rpc.BadRequest"):
                    violations = BadRequest.FromString(detail.value).field_violations
                    return str(violations[0].field) if violations else None
    except Exception:
        return None
    return None
