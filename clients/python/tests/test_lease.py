"""Leases of both clients beside the scripted server. Names begin with the rules."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Scripted, program

from weir_ratelimit import (
    AsyncClient,
    Client,
    ClosedError,
    LeaseLostError,
    LeaseRefusedError,
    MistakeError,
    OutageError,
)
from weir_ratelimit.testing import FakeAsyncClient, FakeClient, serve

PERMITS = """
strategies:
  permits: { concurrency: { limit: 1, per: [resource], ttl: 30s } }
resources:
  - { match: db, strategy: permits }
"""


def on(scripted: Scripted, method: str, **decision: Any) -> None:
    """Answers a method."""
    scripted.do(answer={"match": {"method": method}, "decision": decision})


def grants(scripted: Scripted, ttl: str = "0.9s") -> None:
    """Grants, renews and releases leases."""
    on(scripted, "Acquire", allowed=True, id="x", reason="REASON_OK", limit="4", remaining="3", expiresAfter=ttl)
    on(scripted, "Renew", held=True, expiresAfter=ttl)
    on(scripted, "Release", held=True)


def away(scripted: Scripted, method: str) -> None:
    """Answers a method with an outage."""
    scripted.do(status={"match": {"method": method}, "code": "UNAVAILABLE", "message": "gone"})


def asked(scripted: Scripted, method: str) -> list[dict[str, Any]]:
    """Returns the questions of a method."""
    return [question["request"] for question in scripted.log() if question["method"] == method]


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_c17_c52_renewed_at_a_third_and_released(scripted: Scripted) -> None:
    grants(scripted)
    with Client(scripted.target, on_failure="error", strategy="usual") as weir:
        with weir.lease("db", "bob", weight=2, ttl=timedelta(seconds=1.5), attributes={"region": "eu"}) as lease:
            assert lease.held and lease.decision.source == "weir"
            assert (lease.decision.limit, lease.decision.remaining) == (4, 3)
            eventually(lambda: len(asked(scripted, "Renew")) >= 4)
            assert lease.held
        assert not lease.held and not lease.lost.is_set()
        lease.release("dropped")
        count = len(asked(scripted, "Renew"))
        time.sleep(0.4)
    (acquired,) = asked(scripted, "Acquire")
    released = asked(scripted, "Release")
    place = {"resource": "db", "consumer": "bob", "strategy": "usual", "attributes": {"region": "eu"}}
    assert len(acquired["id"]) == 22
    assert acquired == {**place, "id": acquired["id"], "weight": 2, "ttl": "1.500s"}
    assert released == [{**place, "id": acquired["id"], "outcome": "WORK_OUTCOME_SUCCESS"}]
    assert len(asked(scripted, "Renew")) == count
    assert asked(scripted, "Renew")[0] == {**place, "id": acquired["id"], "ttl": "1.500s"}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(None, "SUCCESS"), (TimeoutError, "DROPPED"), (ValueError, "IGNORED"), (asyncio.CancelledError, "IGNORED")],
)
async def test_c52_the_outcome_is_that_of_the_body(
    error: type[BaseException] | None, outcome: str, scripted: Scripted
) -> None:
    grants(scripted, "30s")

    def body() -> None:
        if error is not None:
            raise error

    async with AsyncClient(scripted.target, on_failure="error") as weir:
        try:
            async with await weir.lease("db"):
                body()
        except BaseException as raised:
            assert type(raised) is error
    with Client(scripted.target, on_failure="error") as client:
        try:
            with client.lease("db"):
                body()
        except BaseException as raised:
            assert type(raised) is error
    assert [one["outcome"] for one in asked(scripted, "Release")] == [f"WORK_OUTCOME_{outcome}"] * 2


def test_c52_a_short_outage_loses_nothing_and_a_long_one_is_told(scripted: Scripted) -> None:
    grants(scripted)
    with Client(scripted.target, on_failure="error") as weir:
        lease = weir.lease("db")
        away(scripted, "Renew")
        time.sleep(0.5)
        assert lease.held
        on(scripted, "Renew", held=True, expiresAfter="0.9s")
        time.sleep(0.6)
        assert lease.held
        away(scripted, "Renew")
        started = time.monotonic()
        assert lease.lost.wait(20)
        assert time.monotonic() - started < 1.2
        assert not lease.held
        with pytest.raises(LeaseLostError), lease:
            pytest.fail("the body must not begin")
    assert [one["outcome"] for one in asked(scripted, "Release")] == ["WORK_OUTCOME_IGNORED"]


def test_c52_a_server_that_hangs_is_told_when_the_lease_ends(scripted: Scripted) -> None:
    grants(scripted)
    with Client(scripted.target, on_failure="error") as weir:
        before = time.monotonic()
        lease = weir.lease("db")
        scripted.do(silent={"match": {"method": "Renew"}})
        assert lease.lost.wait(20)
        assert 0.89 < time.monotonic() - before < 1.3
        lease.release()


async def test_c52_a_process_that_was_stalled_holds_nothing_beyond_the_end(scripted: Scripted) -> None:
    grants(scripted)
    async with AsyncClient(scripted.target, on_failure="error") as weir:
        lease = await weir.lease("db")
        time.sleep(1)
        # No task has run since.
        assert not lease.held
        await lease.release()
    assert [one["outcome"] for one in asked(scripted, "Release")] == ["WORK_OUTCOME_IGNORED"]


async def test_c52_losing_it_cancels_the_body(scripted: Scripted) -> None:
    grants(scripted)
    on(scripted, "Renew", held=False)
    async with AsyncClient(scripted.target, on_failure="error") as weir:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(LeaseLostError):
            async with await weir.lease("db") as lease:
                await asyncio.sleep(20)
        assert lease.lost.is_set() and not lease.held
        assert task.cancelling() == 0
        # The task goes on.
        await asyncio.sleep(0)
    assert [one["outcome"] for one in asked(scripted, "Release")] == ["WORK_OUTCOME_IGNORED"]


async def test_c15_c52_a_cancellation_by_others_stays_one(scripted: Scripted) -> None:
    grants(scripted)
    on(scripted, "Renew", held=False)
    async with AsyncClient(scripted.target, on_failure="error") as weir:

        async def work(lease: Any) -> None:
            async with lease:
                try:
                    await asyncio.sleep(20)
                except asyncio.CancelledError:
                    # Both have cancelled it by now.
                    asyncio.current_task().cancel()  # type: ignore[union-attr]
                    raise

        task = asyncio.ensure_future(work(await weir.lease("db")))
        with pytest.raises(asyncio.CancelledError):
            await task
    async with AsyncClient(scripted.target, on_failure="error") as weir:
        grants(scripted, "30s")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), await weir.lease("db"):
                await asyncio.sleep(20)
    assert [one["outcome"] for one in asked(scripted, "Release")] == ["WORK_OUTCOME_IGNORED"] * 2


def test_c53_an_allowed_answer_without_an_id_is_not_renewed(scripted: Scripted) -> None:
    on(scripted, "Acquire", allowed=True, reason="REASON_ALLOW_LIST")
    with Client(scripted.target, on_failure="error") as weir, weir.lease("db", ttl=0.03) as lease:
        time.sleep(0.1)
        assert lease.held and lease.decision.reason == "allow_list"
    assert {question["method"] for question in scripted.log()} == {"Acquire"}


def test_a_denial_raises_and_waiting_asks_under_the_same_id(scripted: Scripted) -> None:
    on(scripted, "Acquire", reason="REASON_LIMITED", message="No permits")
    with Client(scripted.target, on_failure="allow") as weir:
        with pytest.raises(LeaseRefusedError, match=r"denied \(limited\): No permits") as raised:
            weir.lease("db")
        assert raised.value.decision.reason == "limited"
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(weir.lease("db", wait=20)))
        thread.start()
        eventually(lambda: len(asked(scripted, "Acquire")) >= 3)
        grants(scripted, "30s")
        thread.join()
        found[0].release()
    ids = [question["id"] for question in asked(scripted, "Acquire")]
    assert len(ids) >= 4 and len(set(ids)) == 2


def test_c4_c5_an_outage_is_answered_by_the_policy(scripted: Scripted) -> None:
    away(scripted, "Acquire")
    on(scripted, "Release", held=False)
    with Client(scripted.target, on_failure="allow") as weir:
        with weir.lease("db") as lease:
            assert lease.held and lease.decision.source == "policy"
        with pytest.raises(LeaseRefusedError):
            weir.lease("db", on_failure="deny")
        with pytest.raises(OutageError):
            weir.lease("db", on_failure="error")
        # What may be held is given back.
        eventually(lambda: len(asked(scripted, "Release")) == 3)
        scripted.do(status={"code": "NOT_FOUND", "message": "no"})
        with pytest.raises(MistakeError):
            weir.lease("db")
    with pytest.raises(ClosedError):
        weir.lease("db")


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": 0},
        {"weight": 1.5},
        {"ttl": 0},
        {"ttl": -1},
        {"wait": "1"},
        {"consumer": 1},
        {"attributes": {"a": 1}},
        {"on_failure": "open"},
    ],
)
async def test_c4_wrong_questions_are_mistakes(wrong: dict[str, Any]) -> None:
    for fake in (FakeClient(), Client("127.0.0.1:1", on_failure="allow")):
        with pytest.raises(MistakeError) as raised:
            fake.lease("db", **wrong)
        assert raised.value.field in wrong
    with pytest.raises(MistakeError):
        await FakeAsyncClient().lease("db", **wrong)
    lease = FakeClient().lease("db")
    with pytest.raises(MistakeError, match="outcome"):
        lease.release("done")  # type: ignore[arg-type]


async def test_c15_a_cancelled_acquisition_is_given_back(scripted: Scripted) -> None:
    scripted.do(silent={"match": {"method": "Acquire"}})
    on(scripted, "Release", held=False)
    async with AsyncClient(scripted.target, on_failure="allow") as weir:
        await weir.ready(10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await weir.lease("db")
    # Closing waits for it.
    assert len(asked(scripted, "Release")) == 1
    assert not [task for task in asyncio.all_tasks() if "give_back" in repr(task) or "_renew" in repr(task)]


async def test_c52_a_client_that_is_closed_loses_its_leases(scripted: Scripted) -> None:
    grants(scripted)
    weir = AsyncClient(scripted.target, on_failure="error")
    lease = await weir.lease("db")
    client = Client(scripted.target, on_failure="error")
    other = client.lease("db")
    client.close()
    await weir.aclose()
    async with asyncio.timeout(20):
        await lease.lost.wait()
    assert other.lost.wait(20)
    await lease.release()
    other.release()


def test_c52_a_real_weir(tmp_path: Path) -> None:
    (tmp_path / "weir.yaml").write_text(PERMITS)
    server = serve(program("WEIR_BIN", "weir"), tmp_path / "weir.yaml")
    with server, Client(server.address, on_failure="error") as weir:
        with weir.lease("db", ttl=0.9) as lease:
            with pytest.raises(LeaseRefusedError):
                weir.lease("db")
            # Without renewals it would end: the clock of the server moves on.
            for _ in range(5):
                time.sleep(0.4)
                server.advance(0.4)
            assert lease.held
        with weir.lease("db") as second:
            assert (second.decision.limit, second.decision.remaining) == (1, 0)


async def test_c60_the_fakes_grant_leases(scripted: Scripted) -> None:
    fake = FakeClient()
    fake.script.deny("eve")
    with pytest.raises(LeaseRefusedError):
        fake.lease("db", "eve", weight=2)
    with fake.lease("db", "bob") as lease:
        fake.leases[0].lose()
        assert lease.lost.is_set() and not lease.held
    assert fake.leases[0].outcome == "ignored"
    assert [question.consumer for question in fake.asked] == ["eve", "bob"]
    other = FakeAsyncClient()
    with pytest.raises(LeaseLostError):
        async with await other.lease("db"):
            other.leases[0].lose()
            await asyncio.sleep(20)
    async with await other.lease("db"):
        pass
    assert [lease.outcome for lease in other.leases] == ["ignored", "success"]
