"""Questions, and what is checked before they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

from ._errors import MistakeError
from ._messages import ShouldAllowRequest
from ._options import LONGEST_TIMEOUT, Policy, is_policy, seconds_of

if TYPE_CHECKING:
    from ._costs import Costs

#: The largest message that a server accepts by default.
LARGEST_MESSAGE = 65_536
_LARGEST_COST = (1 << 64) - 1


class Defaults(Protocol):
    """What holds for questions that do not say otherwise."""

    @property
    def on_failure(self) -> Policy: ...

    @property
    def timeout(self) -> float: ...

    @property
    def strategy(self) -> str | None: ...


class Question(NamedTuple):
    """A question that is ready to be sent."""

    message: bytes
    timeout: float
    policy: Policy
    #: What an old server would leave out: costs by name, and the hold.
    has_costs: bool = False
    holds: bool = False


def encode(
    defaults: Defaults,
    resource: str,
    consumer: str,
    cost: int = 1,
    strategy: str | None = None,
    attributes: Mapping[str, str] | None = None,
    peek: bool = False,
    at_most: bool = False,
    id: str | None = None,
    headers: bool = False,
    timeout: timedelta | float | None = None,
    on_failure: Policy | None = None,
    costs: Costs | None = None,
    hold_for: timedelta | None = None,
) -> Question:
    """Checks and encodes a question. `hold_for` was checked by the caller."""
    seconds = defaults.timeout if timeout is None else seconds_of(timeout)
    if seconds is None:
        refuse("timeout", timeout, f"a time above 0 s and at most {LONGEST_TIMEOUT} s")
    strategy = defaults.strategy if strategy is None else strategy
    policy = defaults.on_failure if on_failure is None else on_failure
    if not is_policy(policy):
        refuse("on_failure", on_failure, '"allow", "deny" or "error"')
    if isinstance(cost, bool) or not isinstance(cost, int) or not 0 <= cost <= _LARGEST_COST:
        refuse("cost", cost, "a whole number from 0 to 2^64 - 1")
    if not (isinstance(resource, str) and isinstance(consumer, str)) or strategy is not None or id is not None:
        check_texts({"resource": resource, "consumer": consumer, "strategy": strategy, "id": id})
    request = ShouldAllowRequest(resource=resource, consumer=consumer)
    if strategy is not None:
        request.strategy = strategy
    if cost != 1:
        request.cost = cost
    if id is not None:
        request.id = id
    # Most questions have none of them.
    if not (peek is at_most is headers is False):
        for field, value in (("peek", peek), ("at_most", at_most), ("headers", headers)):
            if not isinstance(value, bool):
                refuse(field, value, "True or False")
            if value:
                setattr(request, field, True)
    if attributes:
        request.attributes.update(check_attributes(attributes))
    if costs is not None:
        # Loaded when it is used: most programs have no costs by name.
        from ._costs import put_costs  # noqa: PLC0415

        put_costs(request, costs)
    if hold_for is not None:
        request.hold_for.FromTimedelta(hold_for)
    message: bytes = request.SerializeToString()
    check_size(message)
    return Question(message, seconds, policy, bool(costs), hold_for is not None)


def check_texts(texts: Mapping[str, object]) -> None:
    """Refuses what is no text. Resource and consumer are required."""
    for field, text in texts.items():
        if not isinstance(text, str) and (text is not None or field in ("resource", "consumer")):
            refuse(field, text, "a text")


def check_attributes(attributes: Mapping[str, str] | None) -> dict[str, str]:
    """Returns attributes that are texts."""
    for name, text in (attributes or {}).items():
        if not isinstance(text, str) or not isinstance(name, str):
            refuse("attributes", {name: text}, "a mapping of texts to texts")
    return dict(attributes or {})


def check_size(message: bytes) -> None:
    """Refuses a message that a server would not accept."""
    if len(message) > LARGEST_MESSAGE:
        text = f"the question has {len(message)} bytes, the bound is {LARGEST_MESSAGE}: shorten its attributes"
        raise MistakeError("OUT_OF_RANGE", text)


def refuse(field: str, value: object, wanted: str) -> NoReturn:
    """Raises a mistake of the caller."""
    raise MistakeError("INVALID_ARGUMENT", f"{field}: {value!r} is not {wanted}", field)
