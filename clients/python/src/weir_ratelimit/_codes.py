"""The two kinds of gRPC codes: outages, which the policy answers, and mistakes of the caller."""

from __future__ import annotations

MISTAKES = frozenset(
    {
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "FAILED_PRECONDITION",
        "ALREADY_EXISTS",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "PERMISSION_DENIED",
    }
)

OUTAGES = frozenset(
    {
        "UNAVAILABLE",
        "DEADLINE_EXCEEDED",
        "RESOURCE_EXHAUSTED",
        "UNKNOWN",
        "INTERNAL",
        "ABORTED",
        "DATA_LOSS",
        "CANCELLED",
        "UNAUTHENTICATED",
    }
)
