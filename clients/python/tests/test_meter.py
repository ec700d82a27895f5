"""Meters of both clients beside the scripted server. Names begin with the rules; S-34 to S-38 are scenarios."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from conftest import Scripted

from weir_ratelimit import (
    AsyncClient,
    BudgetRefusedError,
    Client,
    ClosedError,
    Cost,
    LimitStatus,
    MistakeError,
    _settlements,
)
from weir_ratelimit._core import Core
from weir_ratelimit._errors import OutageError
from weir_ratelimit._flow import Pause
from weir_ratelimit._options import settings_of
from weir_ratelimit._settlements import Settlement, Settlements
from weir_ratelimit.testing import FakeAsyncClient, FakeClient

HELD = {"allowed": True, "reason": "REASON_OK", "heldFor": "600s", "limits": [{"name": "output", "cost": "100"}]}


def holds(scripted: Scripted, outcome: str = "SETTLED") -> None:
    """Holds estimates and settles them."""
    scripted.do(answer={"match": {"method": "ShouldAllow"}, "decision": HELD})
    settled = {"applied": True, "outcome": f"SETTLE_OUTCOME_{outcome}"}
    scripted.do(answer={"match": {"method": "Settle"}, "decision": settled})


def away(scripted: Scripted, **more: Any) -> None:
    """No server settles."""
    scripted.do(status={"match": {"method": "Settle"}, "code": "UNAVAILABLE", "message": "gone", **more})


def settled(scripted: Scripted) -> list[dict[str, Any]]:
    """Returns the costs of all settlements."""
    return [question["request"].get("costs", {}) for question in scripted.log() if question["method"] == "Settle"]


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


async def eventually_async(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


def core() -> Core:
    return Core(settings_of("127.0.0.1:1", "error", 0.1, None, None, False, True, True, None, "off"))


def test_c48_threads_add_to_one_meter(scripted: Scripted) -> None:
    holds(scripted)
    with (
        Client(scripted.target, on_failure="error", timeout=5) as weir,
        weir.meter("llm", estimate={"output": 100}) as one,
    ):

        def add() -> None:
            for _ in range(1000):
                one.add(output=1)

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert settled(scripted) == [{"output": 4000}]


async def test_c15_c48_a_cancelled_stream_settles_what_was_added(scripted: Scripted) -> None:
    holds(scripted)
    async with AsyncClient(scripted.target, on_failure="error", timeout=5) as weir:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), await weir.meter("llm", estimate={"output": 100}) as meter:
                meter.add(output=7)
                await asyncio.sleep(20)
    assert settled(scripted) == [{"output": 7}]


async def test_c49_a_settlement_survives_the_cancellation_of_its_caller(scripted: Scripted) -> None:
    holds(scripted)
    scripted.do(late={"match": {"method": "Settle"}, "delay_ms": 300})
    async with AsyncClient(scripted.target, on_failure="error", timeout=5) as weir:
        meter = await weir.meter("llm", estimate={"output": 100})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await meter.settle(output=3)
        # One attempt, which goes on.
    assert settled(scripted) == [{"output": 3}]
    scripted.do(clear={})
    holds(scripted)
    scripted.do(silent={"match": {"method": "Settle"}, "times": 1})
    async with AsyncClient(scripted.target, on_failure="error", timeout=5) as weir:
        meter = await weir.meter("llm", estimate={"output": 100})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await meter.settle(output=3)
    # It had no answer, so it was repeated.
    assert settled(scripted) == [{"output": 3}] * 2


async def test_c15_a_cancelled_question_is_given_back(scripted: Scripted) -> None:
    holds(scripted)
    scripted.do(silent={"match": {"method": "ShouldAllow"}})
    async with AsyncClient(scripted.target, on_failure="allow", timeout=5) as weir:
        await weir.ready(10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await weir.meter("llm", estimate={"output": 100})
        await eventually_async(lambda: settled(scripted) == [{"output": 0}])
    assert not [task for task in asyncio.all_tasks() if "_work" in repr(task)]


async def test_c49_an_outage_is_no_error_and_what_the_breaker_keeps_back_is_not_sent(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    holds(scripted)
    away(scripted)
    with Client(scripted.target, on_failure="allow", timeout=5) as weir:
        with weir.meter("llm", estimate={"output": 100}) as meter:
            meter.settle(output=3)
        eventually(lambda: len(settled(scripted)) >= 3)
        scripted.do(status={"match": {"method": "ShouldAllow"}, "code": "UNAVAILABLE", "message": "gone"})
        eventually(lambda: weir.allow("llm").failure is not None and weir._core.is_open)
        kept = weir.meter("llm", estimate={"output": 100})
        assert kept.decision.source == "policy"
        started = time.monotonic()
        kept.settle(output=4)
        assert time.monotonic() - started < 0.1
        holds(scripted)
    assert settled(scripted).count({"output": 4}) == 1
    assert {"output": 3} in settled(scripted)[3:]
    assert not [record for record in caplog.records if record.name == "weir_ratelimit"]


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_c51_what_is_due_after_the_time_of_close_is_dropped_and_logged(
    kind: str, scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    holds(scripted)
    away(scripted)

    async def over_asyncio() -> float:
        client = AsyncClient(scripted.target, on_failure="error", timeout=5)
        for _ in range(3):
            async with await client.meter("llm", estimate={"output": 100}):
                pass
        started = time.monotonic()
        await client.aclose(0.5)
        took = time.monotonic() - started
        await asyncio.sleep(0.5)
        with pytest.raises(ClosedError):
            await client.meter("llm", estimate=1)
        return took

    if kind == "asyncio":
        assert 0.4 < asyncio.run(over_asyncio()) < 3
    else:
        client = Client(scripted.target, on_failure="error", timeout=5)
        for _ in range(3):
            with client.meter("llm", estimate={"output": 100}):
                pass
        started = time.monotonic()
        client.close(0.5)
        assert 0.4 < time.monotonic() - started < 3
        with pytest.raises(ClosedError):
            client.meter("llm", estimate=1)
    text = "settlements were dropped, and what they held comes back"
    eventually(lambda: any(text in record.getMessage() for record in caplog.records))


def test_c49_late_unknown_and_refused_settlements_are_logged_once_a_minute(
    scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "weir_ratelimit")
    with Client(scripted.target, on_failure="error", timeout=5) as weir:
        for outcome in ("LATE", "UNKNOWN"):
            holds(scripted, outcome)
            for _ in range(3):
                weir.meter("llm", estimate={"output": 100}).settle(output=1)
        scripted.do(status={"match": {"method": "Settle"}, "code": "PERMISSION_DENIED", "message": "no `debit`"})
        for _ in range(2):
            with pytest.raises(MistakeError):
                weir.meter("llm", estimate={"output": 100}).settle(output=1)
        with pytest.raises(ValueError, match="body"), weir.meter("llm", estimate={"output": 100}):
            raise ValueError("body")
    records = [record for record in caplog.records if record.name == "weir_ratelimit"]
    assert [record.levelname for record in records] == ["WARNING", "WARNING", "ERROR"]
    assert "after the hold has ended" in records[0].getMessage()
    assert "no `debit`" in records[2].getMessage()


def test_c49_the_queue_is_bounded_and_its_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow needs no server: its steps are carried out here, on a clock of the test."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(random, "random", lambda: 1.0)
    counted: list[str] = []
    state = core()
    monkeypatch.setattr(state, "settlement", lambda event, error=None: counted.append(event))
    queue = Settlements(state)
    assert [queue.put(Settlement(b"")) for _ in range(3)] == [True, False, False]
    flow = queue.repeat()
    pauses = []
    step = next(flow)
    while True:
        if isinstance(step, Pause):
            pauses.append(step.seconds)
            now[0] += step.seconds
            try:
                step = next(flow)
            except StopIteration:
                break
        else:
            try:
                step = flow.throw(OutageError("UNAVAILABLE", "gone"))
            except StopIteration:
                break
    assert pauses[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert sum(pauses) == pytest.approx(300, abs=6)
    assert counted == ["dropped"] * 3
    monkeypatch.setattr(_settlements, "_MOST", 10)
    assert [queue.put(Settlement(b"")) for _ in range(12)].count(True) == 1
    assert counted[3:] == ["dropped"] * 2
    assert _settlements._LONGEST == 300


def test_c47_granted_is_none_where_nothing_is_held() -> None:
    fake = FakeClient(on_failure="allow")
    assert fake.meter("llm", estimate=5).granted() is None
    limits = (LimitStatus("output", True, 10, 5, cost=9, granted=4),)
    fake.script.allow(limits=limits, held_for=timedelta(minutes=1))
    meter = fake.meter("llm", estimate={"output": Cost(9, at_least=1), "input": 2})
    assert (meter.granted("output"), meter.granted("input")) == (4, 2)
    with pytest.raises(MistakeError, match="output, input"):
        meter.granted("outptu")


@pytest.mark.parametrize(
    "wrong",
    [
        {"estimate": "5"},
        {"estimate": True},
        {"estimate": -1},
        {"estimate": {"output": 1.5}},
        {"estimate": {"output": 1 << 52}},
        {"estimate": {"output": Cost(5, at_least=6)}},
        {"estimate": {"output": Cost(5, at_least=0)}},
        {"estimate": {1: 5}},
        {"estimate": 1, "hold_for": 0},
        {"estimate": 1, "hold_for": timedelta(days=2)},
        {"estimate": 1, "hold_for": "1m"},
        {"estimate": 1, "on_error": "zero"},
        {"estimate": 1, "on_failure": "open"},
        {"estimate": 1, "attributes": {"a": 1}},
    ],
)
async def test_c4_wrong_questions_are_mistakes(wrong: dict[str, Any]) -> None:
    for client in (FakeClient(), Client("127.0.0.1:1", on_failure="allow")):
        with pytest.raises(MistakeError):
            client.meter("llm", **wrong)
    with pytest.raises(MistakeError):
        await FakeAsyncClient().meter("llm", **wrong)
    for costs in ({"output": -1}, {"output": "1"}, [1]):
        with pytest.raises(MistakeError):
            FakeClient().allow("llm", costs=costs)


async def test_c60_the_fakes_keep_what_was_settled() -> None:
    fake = FakeClient()
    fake.script.deny("eve", retry_after=timedelta(seconds=4))
    with pytest.raises(BudgetRefusedError) as raised:
        fake.meter("llm", "eve", estimate={"output": 100})
    assert raised.value.decision.http().status == 429
    with fake.meter("llm", "bob", estimate={"output": 100}, hold_for=60) as meter:
        meter.add(output=30)
    assert fake.meters[0].settled == {"output": 30}
    assert fake.asked[-1].costs == {"output": 100} and fake.asked[-1].hold_for == timedelta(minutes=1)
    fake.script.allow(held_for=timedelta(minutes=1))
    with fake.meter("llm", "bob", estimate=5) as number:
        assert fake.asked[-1].cost == 5 and number.settled is None
    assert fake.meters[1].settled == {}
    other = FakeAsyncClient()
    with pytest.raises(ValueError, match="body"):
        async with await other.meter("llm", estimate={"output": 100}):
            raise ValueError("body")
    async with await other.meter("llm", estimate={"output": 100}) as last:
        await last.settle(output=1)
    assert [one.settled for one in other.meters] == [{"output": 0}, {"output": 1}]
    fake.allow("llm", costs={"output": 3})
    assert fake.asked[-1].costs == {"output": 3}
