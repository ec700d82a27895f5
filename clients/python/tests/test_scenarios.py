"""The scenarios of all clients, with both clients of this package."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Scripted

from weir_ratelimit import (
    AsyncClient,
    BudgetRefusedError,
    Client,
    Cost,
    Decision,
    LeaseRefusedError,
    MistakeError,
    OutageError,
    WeirError,
)

FOLDER = ROOT / "clients" / "conformance"
ALL = json.loads((FOLDER / "scenarios.json").read_text())
SKIPS = json.loads(Path(__file__).with_name("skips.json").read_text())
# The clients of this package have no other transport.
OVER_GRPC = [scenario for scenario in ALL if "grpc" in scenario["transports"]]
SCENARIOS = [scenario for scenario in OVER_GRPC if scenario["id"] not in SKIPS]
#: What a `with` statement is told of a body that ended so.
ENDS = {"success": None, "error": ValueError("the body"), "cancelled": asyncio.CancelledError()}


def test_the_scenarios_are_there() -> None:
    assert len(ALL) == 93
    assert len(OVER_GRPC) == 73
    assert len({scenario["id"] for scenario in ALL}) == len(ALL)
    assert len(SCENARIOS) + len(SKIPS) == len(OVER_GRPC)
    assert len(SKIPS) == 1


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_scenario(scenario: dict[str, Any], kind: str, scripted: Scripted) -> None:
    for command in scenario["given"]:
        scripted.do(**command)
    options = {"on_failure": "error", "timeout_ms": 5000, **scenario.get("client", {})}
    options["timeout"] = options.pop("timeout_ms") / 1000
    with (Threads if kind == "threads" else Asyncio)(scripted, options).opened() as run:
        outcomes = [outcome for step in scenario["when"] for outcome in run.step(step)]
    assert len(outcomes) == len(scenario["then"])
    for outcome, wanted in zip(outcomes, scenario["then"], strict=True):
        for one, seconds in outcome:
            _check(one, seconds, wanted)
    log = scripted.log() if {"asked", "metadata", "last", "calls"} & scenario.keys() else []
    if "last" in scenario:
        last = {"method": log[-1]["method"], **log[-1]["request"]}
        assert {name: last.get(name) for name in scenario["last"]} == scenario["last"]
    if "asked" in scenario:
        assert [question["request"] for question in log] == scenario["asked"]
    if "calls" in scenario:
        ids = {question["request"].pop("id", None) for question in log}
        assert [{"method": question["method"], **question["request"]} for question in log] == scenario["calls"]
        assert len(ids) == 1 and all(one is None or len(one) == 22 for one in ids)
    for name, value in scenario.get("metadata", {}).items():
        assert [name, value] in log[0]["metadata"]


#: What calls of one step returned or raised, and after how many seconds.
Outcome = list[tuple[Any, float]]


class Threads:
    """Runs steps with the client for threads."""

    def __init__(self, scripted: Scripted, options: dict[str, Any]) -> None:
        self.scripted, self.options = scripted, options
        self.client: Any = None
        #: The lease or the meter of the scenario.
        self.held: Any = None

    @contextmanager
    def opened(self) -> Iterator[Threads]:
        with Client(self.scripted.target, **self.options) as self.client:
            yield self

    def do(self, value: Any) -> Any:
        """Returns what a method of the client returns in the end."""
        return value

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def leave(self, error: BaseException | None) -> Any:
        return self.held.__exit__(type(error) if error else None, error, None)

    def step(self, step: dict[str, Any]) -> list[Outcome]:
        (name, given), *rest = step.items()
        assert not rest
        if name == "command":
            self.scripted.do(**given)
            return []
        if name == "pause_ms":
            self.sleep(given / 1000)
            return []
        if name in ("release", "add"):
            failed = self.outcome(lambda: self.held.add(**given) if name == "add" else self.held.release(given))
            return [] if failed[0] is None else [[failed]]
        if name == "repeat":
            return [[self.call(given["allow"], given["every_ms"] / 1000) for _ in range(given["times"])]]
        return [[getattr(self, f"on_{name}")(given)]]

    def on_allow(self, given: dict[str, Any]) -> tuple[Any, float]:
        return self.call(given, 0)

    def on_lease(self, given: dict[str, Any]) -> tuple[Any, float]:
        return self.begun(lambda: self.client.lease(**_arguments(given)))

    def on_meter(self, given: dict[str, Any]) -> tuple[Any, float]:
        return self.begun(lambda: self.client.meter(**_arguments(given)))

    def on_held(self, given: dict[str, Any]) -> tuple[Any, float]:
        self.sleep(given["after_ms"] / 1000)
        return {"held": self.held.held}, 0

    def on_lost(self, given: dict[str, Any]) -> tuple[Any, float]:
        started = time.monotonic()
        while self.held.held and time.monotonic() - started < given["at_most_ms"] / 1000:
            self.sleep(0.01)
        return {"held": self.held.held}, time.monotonic() - started

    def on_granted(self, given: str) -> tuple[Any, float]:
        return {"granted": self.held.granted(given)}, 0

    def on_settle(self, given: dict[str, int]) -> tuple[Any, float]:
        return self.outcome(lambda: self.held.settle(**given))

    def on_leave(self, given: str) -> tuple[Any, float]:
        return self.outcome(lambda: self.leave(ENDS[given]))

    def call(self, question: dict[str, Any], pause: float) -> tuple[Any, float]:
        self.sleep(pause)
        return self.outcome(lambda: self.client.allow(**_arguments(question)))

    def begun(self, begin: Any) -> tuple[Any, float]:
        found, seconds = self.outcome(begin)
        if isinstance(found, WeirError):
            return found, seconds
        self.held = found
        return found.decision, seconds

    def outcome(self, method: Any) -> tuple[Any, float]:
        """Returns what a method returns or raises, and after which time."""
        started = time.monotonic()
        try:
            found = self.do(method())
        except WeirError as error:
            found = error
        return found, time.monotonic() - started


class Asyncio(Threads):
    """Runs steps with the client for asyncio."""

    @contextmanager
    def opened(self) -> Iterator[Threads]:
        with asyncio.Runner() as self.runner:
            self.client = AsyncClient(self.scripted.target, **self.options)
            yield self
            self.do(self.client.aclose())

    def do(self, value: Any) -> Any:
        async def awaited() -> Any:
            return await value

        return self.runner.run(awaited()) if asyncio.iscoroutine(value) else value

    def sleep(self, seconds: float) -> None:
        # Renewals run meanwhile.
        self.do(asyncio.sleep(seconds))

    def leave(self, error: BaseException | None) -> Any:
        return self.held.__aexit__(type(error) if error else None, error, None)


def _arguments(call: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call: times in milliseconds become seconds, and costs get their type."""
    times = {name: value / 1000 for name, value in call.items() if name.endswith("_ms")}
    rest = {name: value for name, value in call.items() if name not in times}
    for name in ("costs", "estimate"):
        if isinstance(rest.get(name), dict):
            costs = rest[name].items()
            rest[name] = {name: Cost(**cost) if isinstance(cost, dict) else cost for name, cost in costs}
    return rest | {name.removesuffix("_ms"): value for name, value in times.items()}


def _check(outcome: Any, seconds: float, wanted: dict[str, Any]) -> None:
    wanted = dict(wanted)
    if "within_ms" in wanted:
        assert seconds * 1000 <= wanted.pop("within_ms")
    if "held" in wanted or wanted.keys() == {"granted"}:
        assert outcome == wanted
        return
    if not wanted:
        assert outcome is None
        return
    refused = {"lease_refused": LeaseRefusedError, "budget_refused": BudgetRefusedError}
    if wanted.get("error") in refused:
        kind: Any = refused[wanted.pop("error")]
        assert type(outcome) is kind, outcome
        outcome = outcome.decision
    if "error" in wanted:
        kind = {"mistake": MistakeError, "outage": OutageError}[wanted.pop("error")]
        assert type(outcome) is kind, outcome
        assert wanted.pop("text", "") in str(outcome)
        for name, value in wanted.items():
            assert getattr(outcome, name) == value, name
        return
    assert isinstance(outcome, Decision), outcome
    assert bool(outcome) == outcome.allowed
    shown = _shown(outcome)
    for name, value in wanted.items():
        if name == "limits":
            assert [{key: limit[key] for key in one} for limit, one in zip(shown[name], value, strict=True)] == value
        else:
            assert shown[name] == value, name


def _shown(decision: Decision) -> dict[str, Any]:
    """Returns a decision in the words of the scenarios."""
    shown: dict[str, Any] = {name: getattr(decision, name) for name in Decision.__slots__}
    for name in ("retry_after", "reset_after", "wait", "held_for"):
        shown[f"{name}_ms"] = _ms(shown.pop(name))
    shown["denied_by"] = list(decision.denied_by)
    shown["limits"] = [
        {
            "name": limit.name,
            "allowed": limit.allowed,
            "limit": limit.limit,
            "remaining": limit.remaining,
            "retry_after_ms": _ms(limit.retry_after),
            "reset_after_ms": _ms(limit.reset_after),
            "cause": limit.cause,
            **{name: getattr(limit, name) for name in ("cost", "granted", "held", "near_limit", "crossed_near_limit")},
        }
        for limit in decision.limits
    ]
    shown["failure"] = decision.failure.code if decision.failure is not None else None
    http = decision.http()
    shown["http"] = {"status": http.status, "headers": http.headers}
    return shown


def _ms(time: timedelta | None) -> float | None:
    return None if time is None else time / timedelta(milliseconds=1)


#: Rules of one language: whole numbers of JavaScript; forks, and the pool of descriptors, of Python.
ONLY = {10: "typescript", 27: "python", 56: "python"}


def test_every_rule_is_named_by_a_scenario_or_by_a_test_of_each_language() -> None:
    named = {rule for scenario in ALL for rule in scenario["rules"]}
    tests = {
        "python": "".join(file.read_text() for file in (ROOT / "clients/python/tests").glob("test_*.py")),
        "typescript": "".join(file.read_text() for file in (ROOT / "clients/typescript/test").glob("*.test.ts")),
    }
    pattern = {"python": r"def test_\w*?_c{0}_", "typescript": r"\"[^\"\n]*C-{0}\b"}
    for rule in range(1, 61):
        for language, text in tests.items():
            if f"C-{rule}" not in named and ONLY.get(rule, language) == language:
                ranges = re.findall(r"_c(\d+)_to_c(\d+)_", text) if language == "python" else []
                is_named = re.search(pattern[language].format(rule), text) or re.search(rf"def test_c{rule}_", text)
                assert is_named or any(int(first) <= rule <= int(last) for first, last in ranges), (rule, language)
