"""Scenarios on real time, in their whole length: `scripts/test-clients.sh long`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from conftest import Scripted

from weir_ratelimit import Client

pytestmark = pytest.mark.long
OK = {"allowed": True, "reason": "REASON_OK"}


def paced(rate: int, seconds: float) -> Iterator[float]:
    """Yields the time since the start, so many times a second."""
    started = time.monotonic()
    while (passed := time.monotonic() - started) < seconds:
        yield passed
        time.sleep(1 / rate)


def test_long_s14_at_most_ten_probes_a_second(scripted: Scripted) -> None:
    scripted.do(status={"code": "UNAVAILABLE", "message": "gone"})
    with Client(scripted.target, on_failure="allow") as client:
        for _ in paced(100, 10):
            client.allow("search")
    # What opens the breaker, and then at most ten a second.
    assert len(scripted.log()) <= 60 + 100


def test_long_s14_one_hung_node_of_two_never_opens_the_breaker(scripted: Scripted, second: Scripted) -> None:
    with Client(f"ipv4:{scripted.target},{second.target}", on_failure="allow") as client:
        for server in (scripted, second):
            server.answer(**OK)
        assert client.ready(10)
        second.do(freeze={})
        for _ in range(12):
            for _ in range(64):
                client.allow("search")
                assert not client._core._breaker.is_open  # type: ignore[union-attr]
            time.sleep(0.5)
        second.do(thaw={})


def test_long_s15_away_for_a_minute(scripted: Scripted) -> None:
    scripted.answer(**OK)
    with Client(scripted.target, on_failure="allow") as client:
        assert client.ready(10)
        scripted.do(refuse={})
        for _ in paced(20, 60):
            assert client.allow("search").source == "policy"
        scripted.do(listen={})
        started = time.monotonic()
        while client.allow("search").source == "policy":
            time.sleep(0.02)
        assert time.monotonic() - started < 2


def test_long_s25_a_frozen_node_of_two(scripted: Scripted, second: Scripted) -> None:
    """C-24: fewer than 5 % of the calls that begin between 2 and 12 s are late, and the node is used again."""
    for server in (scripted, second):
        server.answer(**OK)
    with Client(f"ipv4:{scripted.target},{second.target}", on_failure="allow") as client:
        assert client.ready(10)
        for _ in paced(50, 1):
            client.allow("search")
        os.kill(second.pid, signal.SIGSTOP)
        late = []
        for passed in paced(50, 12):
            decision = client.allow("search")
            if passed >= 2:
                late.append(decision.source == "policy")
        os.kill(second.pid, signal.SIGCONT)
        print(f"{sum(late)} late of {len(late)}")
        assert sum(late) < 0.05 * len(late)
        second.do(clear={})
        second.answer(**OK)
        for _ in paced(20, 15):
            client.allow("search")
        assert len(second.log()) > 10
