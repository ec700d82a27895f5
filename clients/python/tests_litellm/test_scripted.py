"""LiteLLM's hook beside the scripted server: what it asks, and what it settles."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, answer, model, proxy

sys.path.insert(0, str(ROOT / "clients/python/tests"))
MODELS = [
    model("good", answer(13, 40)),
    model("bad", "litellm.InternalServerError"),
    model("worse", "litellm.InternalServerError"),
    # The mock streams texts alone.
    model("spoken", "A short answer of some words"),
]
SETTINGS = {"fallbacks": [{"bad": ["good"]}], "num_retries": 0}


@pytest.fixture
def scripted() -> Iterator[Any]:
    """The scripted server, which grants 100 tokens."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("clients_conftest", ROOT / "clients/python/tests/conftest.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.Scripted()
    settled = {"applied": True, "outcome": "SETTLE_OUTCOME_SETTLED"}
    server.do(answer={"match": {"method": "Settle"}, "decision": settled})
    yield server
    server.end()


def grants(scripted: Any, cost: int, granted: int) -> None:
    limits = [{"name": "tokens", "allowed": True, "limit": "100", "cost": str(cost), "granted": str(granted)}]
    held = {"allowed": True, "reason": "REASON_OK", "heldFor": "600s", "limits": limits}
    scripted.do(answer={"match": {"method": "ShouldAllow"}, "decision": held})


def calls(scripted: Any, method: str) -> list[dict[str, Any]]:
    return [question["request"] for question in scripted.log() if question["method"] == method]


def settled(scripted: Any, count: int) -> list[dict[str, Any]]:
    """Returns the settlements once there are so many: LiteLLM tells of a success after the answer."""
    end = time.monotonic() + 20
    while len(calls(scripted, "Settle")) < count:
        assert time.monotonic() < end, scripted.log()
        time.sleep(0.05)
    return calls(scripted, "Settle")


def test_the_hook_asks_before_and_settles_after(hook: str, scripted: Any, tmp_path: Path) -> None:
    with proxy(tmp_path, MODELS, hook, SETTINGS, WEIR=scripted.target) as litellm:
        # Without max_tokens what fits is granted.
        grants(scripted, 4109, 100)
        assert litellm.ask("good").json()["usage"]["total_tokens"] == 53
        (first,) = calls(scripted, "ShouldAllow")
        prompt = first["costs"]["tokens"]["atLeast"] - 1
        assert first["costs"]["tokens"]["cost"] == prompt + 4096
        assert (first["resource"], first["consumer"], first["holdFor"]) == ("llm", "bob", "600s")
        assert settled(scripted, 1)[0]["costs"] == {"tokens": 53}
        assert settled(scripted, 1)[0]["id"] == first["id"]

        # With it, all or nothing. The caller's id is not ours.
        grants(scripted, prompt + 40, prompt + 40)
        litellm.ask("good", max_tokens=40, litellm_call_id="mine")
        second = calls(scripted, "ShouldAllow")[1]
        assert second["costs"]["tokens"] == {"cost": prompt + 40}
        assert second["id"] not in ("mine", first["id"])
        settled(scripted, 2)

        # A fallback after a failed attempt: one question, one settlement, of the real use.
        assert litellm.ask("bad", max_tokens=40).status_code == 200
        assert [one["costs"] for one in settled(scripted, 3)] == [{"tokens": 53}] * 3

        # A request that fails as a whole gives all back.
        assert litellm.ask("worse", max_tokens=40).status_code == 500
        assert settled(scripted, 4)[3]["costs"] == {"tokens": 0}

        # A stream settles at its end.
        assert "data:" in litellm.ask("spoken", max_tokens=40, stream=True).text
        assert settled(scripted, 5)[4]["costs"]["tokens"] > 0
        asked = calls(scripted, "ShouldAllow")
        assert len(asked) == 5 and len({one["id"] for one in asked}) == 5

        # A denial is an answer of HTTP, with its headers, and settles nothing.
        denied = {
            "reason": "REASON_LIMITED",
            "retryAfter": "7s",
            "message": "No tokens",
            "headers": {"Retry-After": "7"},
        }
        scripted.do(answer={"match": {"method": "ShouldAllow"}, "decision": denied})
        refused = litellm.ask("good")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
        assert "No tokens" in refused.text
        time.sleep(0.5)
        assert len(calls(scripted, "Settle")) == 5


def test_the_ready_hook_follows_its_policy(scripted: Any, tmp_path: Path) -> None:
    from conftest import READY

    scripted.do(status={"match": {"method": "ShouldAllow"}, "code": "UNAVAILABLE", "message": "gone"})
    with proxy(tmp_path, MODELS, READY, SETTINGS, WEIR=scripted.target, POLICY="allow") as litellm:
        assert litellm.ask("good").status_code == 200
        assert settled(scripted, 1)[0]["costs"] == {"tokens": 53}


def test_the_page_is_run_as_written(scripted: Any, tmp_path: Path) -> None:
    text = (ROOT / "docs/clients/litellm.md").read_text()
    (page,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert "callbacks: weir_budget.hook" in text and page.count('"weir:8081"') == 1
    limits = [
        {"name": "input", "allowed": True, "limit": "100", "cost": "13", "granted": "13"},
        {"name": "output", "allowed": True, "limit": "100", "cost": "4096", "granted": "40"},
    ]
    held = {"allowed": True, "reason": "REASON_OK", "heldFor": "600s", "limits": limits}
    scripted.do(answer={"match": {"method": "ShouldAllow"}, "decision": held})
    with proxy(tmp_path, MODELS, page.replace("weir:8081", scripted.target), SETTINGS) as litellm:
        assert litellm.ask("good").status_code == 200
        (asked,) = calls(scripted, "ShouldAllow")
        assert asked["consumer"] and asked["costs"]["output"] == {"cost": 4096, "atLeast": 1}
        assert settled(scripted, 1)[0]["costs"] == {"input": 13, "output": 40}
