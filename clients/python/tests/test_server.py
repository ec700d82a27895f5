"""`serve`: a real `weir` on the clock of the test."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import program

from weir_ratelimit import AsyncClient, Client, WeirError
from weir_ratelimit.testing import serve

HOURLY = """
strategies:
  api: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 1 } }] }
resources:
  - { match: api, strategy: api }
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A file with a limit of one call an hour."""
    file = tmp_path / "weir.yaml"
    file.write_text(HOURLY)
    return file


def test_c60_an_hour_passes_in_milliseconds(config: Path) -> None:
    with serve(program("WEIR_BIN", "weir"), config) as server:
        with Client(server.address, on_failure="error", timeout=5) as weir:
            assert [weir.allow("api", "bob").allowed for _ in range(2)] == [True, False]
            started = time.monotonic()
            server.advance(timedelta(hours=1, microseconds=-1))
            denied = weir.allow("api", "bob")
            assert (denied.allowed, denied.retry_after) == (False, timedelta(microseconds=1))
            server.advance(0.000001)
            assert weir.allow("api", "bob")
            assert time.monotonic() - started < 5
        with pytest.raises(WeirError, match="number of seconds from 0"):
            server.advance(-1)
        server.advance(0)
    with pytest.raises(WeirError, match="closed"):
        server.advance(1)
    server.close()


async def test_c60_with_asyncio(config: Path) -> None:
    with serve(program("WEIR_BIN", "weir"), config) as server:
        async with AsyncClient(server.address, on_failure="error", timeout=5) as weir:
            assert [(await weir.allow("api", "bob")).allowed for _ in range(2)] == [True, False]
            server.advance(3600)
            assert await weir.allow("api", "bob")


def test_c60_a_weir_that_does_not_start_says_why(tmp_path: Path) -> None:
    config = tmp_path / "weir.yaml"
    config.write_text("strategys: {}\n")
    with pytest.raises(WeirError, match=r"weir has not started: [^$]*strategys"):
        serve(program("WEIR_BIN", "weir"), config)
    with pytest.raises(FileNotFoundError):
        serve(tmp_path / "weir", config)


def test_c60_a_weir_that_has_died_is_told(config: Path) -> None:
    with serve(program("WEIR_BIN", "weir"), config) as server:
        server._process.kill()
        server._process.wait()
        with pytest.raises(WeirError):
            server.advance(1)
