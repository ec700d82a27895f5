"""What all middleware share: from a request to a question, and from a decision to an answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from ._decision import Decision, policy_decision
from ._errors import ConfigurationError, MistakeError, OutageError

_LONGEST = 512

Resource = str | Callable[[Any], Any]
Consumer = Callable[[Any], Any]
Function = Callable[[Any], Any]


class More(TypedDict, total=False):
    """The further options of a middleware, as those of `Options`."""

    cost: int | Function
    attributes: Function
    skip: Function
    missing: str
    headers: bool
    hold: bool
    on_denied: Callable[..., Any]
    on_mistake: Literal["error", "policy"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a request: it is passed on if there is no status."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    decision: Decision | None = None

    @property
    def hold(self) -> float:
        """How long to hold the request, in seconds."""
        wait = self.decision.wait if self.decision is not None and self.decision.allowed else None
        return wait.total_seconds() if wait is not None else 0.0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of every middleware."""

    resource: Resource
    #: Who uses it. Never take it from a header that callers can write.
    consumer: Consumer
    cost: int | Callable[[Any], Any] = 1
    attributes: Callable[[Any], Any] | None = None
    #: Requests that pass unasked.
    skip: Callable[[Any], Any] | None = None
    #: What a request gets without a consumer, or with a consumer or an attribute above 512 bytes: `"deny"` is 403,
    #: `"skip"` passes unasked, and any other text is the consumer.
    missing: str = "deny"
    headers: bool = True
    #: Whether to hold a request for as long as the strategy says.
    hold: bool = True
    #: What makes the answer to a request that is denied.
    on_denied: Callable[..., Any] | None = None
    #: What a mistake gets, such as an unknown strategy: the 500 of the framework, or the policy.
    on_mistake: Literal["error", "policy"] = "error"

    def __post_init__(self) -> None:
        if not callable(self.resource) and (not isinstance(self.resource, str) or not self.resource):
            raise ConfigurationError("resource: required, a text or a function")
        if not callable(self.consumer):
            raise ConfigurationError("consumer: required, a function such as client_address(hops=1)")
        if not isinstance(self.missing, str) or not self.missing:
            raise ConfigurationError(f'missing: {self.missing!r} is not "deny", "skip" or the text of a consumer')
        if self.on_mistake not in ("error", "policy"):
            raise ConfigurationError(f'on_mistake: {self.on_mistake!r} is not "error" or "policy"')

    def judge(self, client: Any, request: Any) -> Verdict:
        """Asks about a request, on a thread."""
        if self.skip is not None and self.skip(request):
            return Verdict()
        given = self.attributes(request) if self.attributes is not None else None
        question = self._question(self.consumer(request), given)
        if isinstance(question, Verdict):
            return question
        resource = self.resource(request) if callable(self.resource) else self.resource
        cost = self.cost(request) if callable(self.cost) else self.cost
        try:
            decision = client.allow(resource, cost=cost, headers=self.headers, **question)
        except MistakeError as mistake:
            decision = self._mistaken(client, mistake)
        return self._verdict(decision)

    async def judge_async(self, client: Any, request: Any) -> Verdict:
        """Asks about a request, in a loop. The functions of the options may be asynchronous."""
        if self.skip is not None and await _value(self.skip(request)):
            return Verdict()
        given = await _value(self.attributes(request)) if self.attributes is not None else None
        question = self._question(await _value(self.consumer(request)), given)
        if isinstance(question, Verdict):
            return question
        resource = await _value(self.resource(request)) if callable(self.resource) else self.resource
        cost = await _value(self.cost(request)) if callable(self.cost) else self.cost
        try:
            decision = await client.allow(resource, cost=cost, headers=self.headers, **question)
        except MistakeError as mistake:
            decision = self._mistaken(client, mistake)
        return self._verdict(decision)

    def _question(self, consumer: Any, attributes: Mapping[str, str] | None) -> dict[str, Any] | Verdict:
        if _fits(consumer) and consumer and all(map(_fits, (attributes or {}).values())):
            return {"consumer": consumer, "attributes": attributes}
        if self.missing == "skip":
            return Verdict()
        if self.missing == "deny":
            return Verdict(403, text="The caller is not known")
        return {"consumer": self.missing}

    def _mistaken(self, client: Any, mistake: MistakeError) -> Decision:
        if self.on_mistake == "error" or client.on_failure == "error":
            raise mistake
        return policy_decision(client.on_failure == "allow", OutageError("UNKNOWN", "a mistake", mistake))

    def _verdict(self, decision: Decision) -> Verdict:
        return verdict_of(decision, self.headers)


def verdict_of(decision: Decision, headers: bool = True) -> Verdict:
    """Returns what becomes of a request with this decision."""
    http = decision.http()
    text = decision.message or "Rate limit exceeded"
    return Verdict(http.status, http.headers if headers else {}, text, decision)


def check_client(client: Any, *, asynchronous: bool) -> None:
    """Checks that a client fits: one for threads would block a loop."""
    allow = getattr(client, "allow", None)
    if not callable(allow):
        raise ConfigurationError("client: required, a client or a fake")
    if inspect.iscoroutinefunction(allow) != asynchronous:
        wanted = "AsyncClient, because a Client would block the loop" if asynchronous else "Client"
        raise ConfigurationError(f"client: {type(client).__name__} does not fit here: give it an {wanted}")


def is_preflight(method: str, has_origin: bool, has_request_method: bool) -> bool:
    """Returns whether a request is the preflight of a browser: it carries no credentials to ask about."""
    return method == "OPTIONS" and has_origin and has_request_method


def _fits(text: Any) -> bool:
    return isinstance(text, str) and len(text.encode("utf-8", "surrogatepass")) <= _LONGEST


async def _value(value: Any | Awaitable[Any]) -> Any:
    return await value if inspect.isawaitable(value) else value
