"""Decisions and failures from what gRPC gives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from google.protobuf.message import DecodeError

from ._codes import MISTAKES
from ._decision import Decision, LimitStatus, maker
from ._errors import MistakeError, OutageError
from ._messages import REASONS, BadRequest, RichStatus, ShouldAllowResponse
from ._question import Question

SHOULD_ALLOW = "/weir.v1.RateLimitService/ShouldAllow"


def decision_of(message: bytes, question: Question) -> Decision:
    """Reads the decision that a server sent for a question."""
    try:
        answer = ShouldAllowResponse.FromString(message)
    except DecodeError as error:
        raise OutageError("INTERNAL", "the answer is no message", error) from error
    has = answer.HasField
    denied_by, headers, limits = answer.denied_by, answer.headers, answer.limits
    decision: Decision = maker(Decision)(
        answer.allowed,
        "weir",
        REASONS.get(answer.reason, "unknown"),
        answer.degraded,
        answer.limit if has("limit") else None,
        answer.remaining if has("remaining") else None,
        time_of(answer.retry_after) if has("retry_after") else None,
        time_of(answer.reset_after) if has("reset_after") else None,
        time_of(answer.wait) if has("wait") else None,
        answer.granted if has("granted") else None,
        answer.applied if has("applied") else None,
        tuple(denied_by) if denied_by else (),
        tuple(map(_limit, limits)) if limits else (),
        answer.binding or None,
        answer.message or None,
        dict(headers) if headers else {},
        answer.local,
        answer.approximate,
        time_of(answer.held_for) if has("held_for") else None,
        None,
    )
    if question.has_costs or question.holds:
        from ._costs import check_answer  # noqa: PLC0415

        return check_answer(decision, question.has_costs, question.holds)
    return decision


def _limit(limit: Any) -> LimitStatus:
    has = limit.HasField
    status: LimitStatus = maker(LimitStatus)(
        limit.name,
        limit.allowed,
        limit.limit,
        limit.remaining,
        time_of(limit.retry_after) if has("retry_after") else None,
        time_of(limit.reset_after) if has("reset_after") else None,
        limit.cause or None,
        limit.cost,
        limit.granted,
        limit.held,
        limit.near_limit,
        limit.crossed_near_limit,
    )
    return status


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
