"""The scenarios of all clients, with both clients of this package."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Scripted

from weir_ratelimit import AsyncClient, Client, Decision, LeaseRefusedError, MistakeError, OutageError, WeirError

FOLDER = ROOT / "clients" / "conformance"
ALL = json.loads((FOLDER / "scenarios.json").read_text())
SKIPS = json.loads(Path(__file__).with_name("skips.json").read_text())
# The clients of this package have no other transport.
OVER_GRPC = [scenario for scenario in ALL if "grpc" in scenario["transports"]]
SCENARIOS = [scenario for scenario in OVER_GRPC if scenario["id"] not in SKIPS]


def test_the_scenarios_are_there() -> None:
    assert len(ALL) == 68
    assert len(OVER_GRPC) == 48
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
    if kind == "threads":
        with Client(scripted.target, **options) as client:
            leases: list[Any] = []
            outcomes = [outcome for step in scenario["when"] for outcome in _step(client, step, scripted, leases)]
    else:
        outcomes = asyncio.run(_steps_async(scripted, options, scenario["when"]))
    assert len(outcomes) == len(scenario["then"])
    for outcome, wanted in zip(outcomes, scenario["then"], strict=True):
        for one, seconds in outcome:
            _check(one, seconds, wanted)
    log = scripted.log() if {"asked", "metadata", "last"} & scenario.keys() else []
    if "last" in scenario:
        last = {"method": log[-1]["method"], **log[-1]["request"]}
        assert {name: last.get(name) for name in scenario["last"]} == scenario["last"]
    if "asked" in scenario:
        assert [question["request"] for question in log] == scenario["asked"]
    for name, value in scenario.get("metadata", {}).items():
        assert [name, value] in log[0]["metadata"]


Outcome = list[tuple[Any, float]]


def _step(client: Client, step: dict[str, Any], scripted: Scripted, leases: list[Any]) -> list[Outcome]:
    if "command" in step:
        scripted.do(**step["command"])
        return []
    if "pause_ms" in step:
        time.sleep(step["pause_ms"] / 1000)
        return []
    if "lease" in step:
        try:
            leases.append(client.lease(**_seconds(step["lease"])))
        except WeirError as error:
            return [[(error, 0)]]
        return [[(leases[-1].decision, 0)]]
    if "held" in step:
        time.sleep(step["held"]["after_ms"] / 1000)
        return [[({"held": leases[-1].held}, 0)]]
    if "release" in step:
        leases[-1].release(step["release"])
        return []
    times, every, call = _calls(step)
    outcome: Outcome = []
    for _ in range(times):
        time.sleep(every)
        started = time.monotonic()
        try:
            one: Any = client.allow(**call)
        except (MistakeError, OutageError) as error:
            one = error
        outcome.append((one, time.monotonic() - started))
    return [outcome]


async def _steps_async(scripted: Scripted, options: dict[str, Any], steps: list[dict[str, Any]]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    leases: list[Any] = []
    async with AsyncClient(scripted.target, **options) as client:
        for step in steps:
            if "lease" in step:
                try:
                    leases.append(await client.lease(**_seconds(step["lease"])))
                    outcomes.append([(leases[-1].decision, 0)])
                except WeirError as error:
                    outcomes.append([(error, 0)])
                continue
            if "held" in step:
                await asyncio.sleep(step["held"]["after_ms"] / 1000)
                outcomes.append([({"held": leases[-1].held}, 0)])
                continue
            if "release" in step:
                await leases[-1].release(step["release"])
                continue
            if "command" in step:
                scripted.do(**step["command"])
                continue
            if "pause_ms" in step:
                await asyncio.sleep(step["pause_ms"] / 1000)
                continue
            times, every, call = _calls(step)
            outcome: Outcome = []
            for _ in range(times):
                await asyncio.sleep(every)
                started = time.monotonic()
                try:
                    one: Any = await client.allow(**call)
                except (MistakeError, OutageError) as error:
                    one = error
                outcome.append((one, time.monotonic() - started))
            outcomes.append(outcome)
    return outcomes


def _calls(step: dict[str, Any]) -> tuple[int, float, dict[str, Any]]:
    repeat = step.get("repeat", {"times": 1, "every_ms": 0, **step})
    return repeat["times"], repeat["every_ms"] / 1000, _seconds(repeat["allow"])


def _seconds(call: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call: times in milliseconds become seconds."""
    times = {name: value / 1000 for name, value in call.items() if name.endswith("_ms")}
    rest = {name: value for name, value in call.items() if name not in times}
    return rest | {name.removesuffix("_ms"): value for name, value in times.items()}


def _check(outcome: Any, seconds: float, wanted: dict[str, Any]) -> None:
    wanted = dict(wanted)
    if "within_ms" in wanted:
        assert seconds * 1000 <= wanted.pop("within_ms")
    if "held" in wanted:
        assert outcome == wanted
        return
    if wanted.get("error") == "lease_refused":
        assert type(outcome) is LeaseRefusedError, outcome
        del wanted["error"]
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
    for name in ("retry_after", "reset_after", "wait"):
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
        }
        for limit in decision.limits
    ]
    shown["failure"] = decision.failure.code if decision.failure is not None else None
    http = decision.http()
    shown["http"] = {"status": http.status, "headers": http.headers}
    return shown


def _ms(time: timedelta | None) -> float | None:
    return None if time is None else time / timedelta(milliseconds=1)
