"""The fakes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from weir_ratelimit import ClosedError, ConfigurationError, MistakeError, OutageError
from weir_ratelimit.testing import FakeAsyncClient, FakeClient


def test_c60_the_newest_line_answers() -> None:
    now = [5.0]
    weir = FakeClient(on_failure="allow", clock=lambda: now[0])
    assert weir.allow("search", "bob").reason == "ok"
    weir.script.deny("bob", retry_after=timedelta(seconds=4), headers={"RateLimit": "x"})
    decision = weir.allow("search", "bob", headers=True)
    assert (decision.http().status, decision.http().headers) == (429, {"RateLimit": "x", "Retry-After": "4"})
    assert weir.allow("search", "bob").headers == {}
    assert weir.allow("search", "carol")
    weir.script.away("bob", times=1)
    now[0] = 6.0
    assert weir.allow("search", "bob").source == "policy"
    with pytest.raises(OutageError):
        weir.script.away("bob", times=1)
        weir.allow("search", "bob", on_failure="error")
    assert not weir.allow("search", "bob")
    weir.script.mistake("NOT_FOUND", field="strategy")
    with pytest.raises(MistakeError) as raised:
        weir.allow("search", "bob", strategy="gold")
    assert raised.value.field == "strategy"
    assert weir.asked[-1].strategy == "gold"
    assert [asked.at for asked in weir.asked] == [5.0] * 4 + [6.0] * 4
    assert weir.script.clear() is weir.script
    assert weir.allow("search", "bob")


def test_c60_it_checks_questions_and_scripts() -> None:
    weir = FakeClient()
    with pytest.raises(MistakeError):
        weir.allow("search", cost=-1)
    with pytest.raises(ConfigurationError):
        weir.script.mistake("UNAVAILABLE")
    with pytest.raises(ConfigurationError):
        weir.script.away(code="NOT_FOUND")
    with pytest.raises(TypeError):
        weir.script.deny(retry=1)
    with pytest.raises(ConfigurationError):
        FakeClient(on_failure="open")  # type: ignore[arg-type]
    assert weir.ready(1)
    weir.close()
    assert not weir.ready(1)
    with pytest.raises(ClosedError):
        weir.allow("search")


async def test_c60_asyncio() -> None:
    async with FakeAsyncClient() as weir:
        weir.script.deny("bob")
        assert not await weir.allow("search", "bob")
        assert await weir.ready(1)
    with pytest.raises(ClosedError):
        await weir.allow("search")
