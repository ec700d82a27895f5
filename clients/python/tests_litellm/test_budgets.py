"""LiteLLM beside a real `weir`: what passes of a budget, and what LiteLLM's own limiter lets through, printed."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from conftest import ROOT, Proxy, answer, model, prompt_tokens, proxy

from weir_ratelimit import Client

CALLS = (58, 80, 175, 175, 175)
CONFIG = """
strategies:
  llm:
    hold: { max: %(hold)ds }
    limits: [{ name: tokens, per: [consumer], cost: tokens, fixed_window: { limit: %(limit)d, window: 1m } }]
resources:
  - { match: llm, strategy: llm }
"""


@contextmanager
def weir(folder: Path, limit: int, hold: int) -> Iterator[str]:
    """Starts a real server, and returns its address."""
    (folder / "weir.yaml").write_text(CONFIG % {"limit": limit, "hold": hold})
    binary = os.environ.get("WEIR_BIN", str(ROOT / "target/tests/weir"))
    flags = ["--config", str(folder / "weir.yaml"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    server = subprocess.Popen([binary, "serve", *flags], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        for line in server.stderr:
            found = re.search(r'"grpc":\s*"([^"]+)"', line)
            if found:
                threading.Thread(target=server.stderr.read, daemon=True).start()
                yield found[1]
                return
        raise AssertionError("weir has not started")
    finally:
        server.kill()
        server.wait()


def fresh_minute(seconds: float) -> None:
    """Waits until so much of a window of a minute is left: windows begin with the minutes of the clock."""
    left = 60 - time.time() % 60
    if left < seconds:
        time.sleep(left + 0.1)


def tokens(response: httpx.Response) -> int:
    """Returns the tokens of an answer, 0 of a denial."""
    assert response.status_code in (200, 403, 429), response.text
    return int(response.json()["usage"]["total_tokens"]) if response.status_code == 200 else 0


def five(litellm: Proxy, prompt: int, **more: str) -> int:
    """Makes the five calls, one after the other, and returns the tokens that passed."""
    passed = 0
    for number, size in enumerate(CALLS):
        passed += tokens(litellm.ask(f"m{number}", max_tokens=size - prompt, **more))
        time.sleep(0.5)
    return passed


def test_five_calls_against_100_tokens_a_minute(hook: str, tmp_path: Path) -> None:
    prompt = prompt_tokens()
    models = [model(f"m{number}", answer(prompt, size - prompt)) for number, size in enumerate(CALLS)]
    with weir(tmp_path, 100, 600) as address, proxy(tmp_path, models, hook, {}, WEIR=address) as litellm:
        fresh_minute(20)
        ours = five(litellm, prompt)
    own = tmp_path / "own"
    own.mkdir()
    with proxy(own, models, None, {}) as litellm:
        fresh_minute(20)
        theirs = five(litellm, prompt, key="sk-tpm-100")
    print(f"five calls of {sum(CALLS)} tokens against 100 a minute: weir {ours}, LiteLLM's own limiter {theirs}")
    assert ours == 58


def test_a_fallback_settles_what_the_answer_used(hook: str, tmp_path: Path) -> None:
    prompt = prompt_tokens()
    models = [model("good", answer(prompt, 58 - prompt)), model("bad", "litellm.InternalServerError")]
    settings = {"fallbacks": [{"bad": ["good"]}], "num_retries": 0}
    with weir(tmp_path, 100, 600) as address, proxy(tmp_path, models, hook, settings, WEIR=address) as litellm:
        fresh_minute(30)
        assert tokens(litellm.ask("bad", max_tokens=100 - prompt)) == 58
        with Client(address, on_failure="error", timeout=5) as client:

            def left() -> tuple[int, int]:
                (limit,) = client.allow("llm", "bob", costs={"tokens": 1}, peek=True).limits
                return limit.remaining, limit.held

            end = time.monotonic() + 20
            while left() != (42, 0):
                assert time.monotonic() < end, left()
                time.sleep(0.05)


def test_200_callers_against_10000_tokens_a_minute(hook: str, tmp_path: Path) -> None:
    prompt = prompt_tokens()
    models = [model("m", answer(prompt, 50 - prompt))]

    def crowd(litellm: Proxy, key: str | None = None) -> int:
        passed: list[int] = []
        end = time.time() // 60 * 60 + 59

        def caller() -> None:
            while time.time() < end:
                response = litellm.ask("m", max_tokens=60 - prompt, **({"key": key} if key else {}))
                passed.append(tokens(response))
                if response.status_code != 200:
                    wait = float(response.headers.get("retry-after", "60"))
                    if time.time() + wait >= end:
                        return
                    time.sleep(wait)

        threads = [threading.Thread(target=caller) for _ in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(passed)

    environment = {"HOLD_SECONDS": "5"}
    with (
        weir(tmp_path, 10_000, 5) as address,
        proxy(tmp_path, models, hook, {}, WEIR=address, **environment) as litellm,
    ):
        fresh_minute(55)
        ours = crowd(litellm)
    own = tmp_path / "own"
    own.mkdir()
    with proxy(own, models, None, {}) as litellm:
        fresh_minute(55)
        theirs = crowd(litellm, "sk-tpm-10000")
    print(f"200 callers against 10,000 tokens a minute: weir {ours}, LiteLLM's own limiter {theirs}")
    assert 9_500 <= ours <= 10_000
