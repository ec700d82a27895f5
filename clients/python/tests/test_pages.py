"""The quickstarts of docs/clients, run as they are written: allowed, denied, Weir away, and back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import ROOT, Scripted, free_port, program
from fastapi import FastAPI

from weir_ratelimit import LimitStatus, MistakeError
from weir_ratelimit.testing import FakeAsyncClient, FakeClient

SERVERS = {
    "fastapi": [sys.executable, "-m", "uvicorn", "main:app", "--port", "PORT"],
    "flask": [sys.executable, "-m", "flask", "--app", "main", "run", "--port", "PORT"],
    "django": [
        sys.executable,
        "-c",
        'import main, wsgiref.simple_server as s; s.make_server("127.0.0.1", PORT, main.application).serve_forever()',
    ],
}
LIMITS = """
strategies:
  api: { limits: [{ name: each, per: [consumer], token_bucket: { rate: 1/1h, burst: 2 } }] }
resources:
  - { match: api, strategy: api }
"""


def quickstart(page: str) -> str:
    text = (ROOT / "docs" / "clients" / f"{page}.md").read_text()
    found = re.search(r"^The whole program, `main\.py`.*?^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    assert len([line for line in found[1].splitlines() if line]) <= 15
    return found[1]


def run(command: list[str], folder: Path, weir: str, port: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "WEIR": weir, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    replaced = [word.replace("PORT", str(port)) for word in command]
    return subprocess.Popen(replaced, cwd=folder, env=environment)


def until(url: str, wanted: Callable[[httpx.Response], bool]) -> httpx.Response:
    end = time.monotonic() + 40
    while True:
        try:
            answer = httpx.get(url)
        except httpx.TransportError:
            answer = None
        if answer is not None and wanted(answer):
            return answer
        assert time.monotonic() < end, answer
        time.sleep(0.05)


@pytest.mark.parametrize("page", SERVERS)
def test_s40_quickstarts(page: str, scripted: Scripted, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(quickstart(page))
    scripted.answer(allowed=True, reason="REASON_OK", headers={"RateLimit": "r"})
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    server = run(SERVERS[page], tmp_path, scripted.target, port)
    try:
        until(url, lambda answer: "ratelimit" in answer.headers)
        assert scripted.log()[0]["request"] == {"resource": "api", "consumer": "127.0.0.1", "headers": True}
        scripted.answer(reason="REASON_LIMITED", retryAfter="3s", headers={"RateLimit": "r", "Retry-After": "3"})
        answer = httpx.get(url, headers={"X-Forwarded-For": "6.6.6.6"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
        scripted.do(refuse={})
        answer = until(url, lambda answer: answer.status_code == 200)
        assert "hello" in answer.text and "ratelimit" not in answer.headers
        scripted.do(listen={})
        until(url, lambda answer: answer.status_code == 429)
    finally:
        server.terminate()
        server.wait(20)


def test_s40_a_real_weir(tmp_path: Path) -> None:
    """The page of FastAPI, whose uvicorn needs no proxy headers, before the program itself."""
    (tmp_path / "weir.yaml").write_text(LIMITS)
    (tmp_path / "main.py").write_text(quickstart("fastapi"))
    grpc, admin, port = free_port(), free_port(), free_port()
    flags = ["--listen", f"127.0.0.1:{grpc}", "--admin", f"127.0.0.1:{admin}"]
    weir = subprocess.Popen([program("WEIR_BIN", "weir"), "serve", "--config", tmp_path / "weir.yaml", *flags])
    server = run(SERVERS["fastapi"], tmp_path, f"127.0.0.1:{grpc}", port)
    url = f"http://127.0.0.1:{port}/"
    try:
        first = until(url, lambda answer: "ratelimit" in answer.headers)
        assert (first.status_code, first.headers["x-ratelimit-limit"]) == (200, "2")
        denied = until(url, lambda answer: answer.status_code == 429)
        assert int(denied.headers["retry-after"]) > 3000
    finally:
        for process in (server, weir):
            process.kill()
            process.wait(20)


def executed(page: str, **names: Any) -> dict[str, Any]:
    """Executes the code of a page."""
    text = (ROOT / "docs" / "clients" / f"{page}.md").read_text()
    exec("\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)), names)
    return names


def test_s40_the_page_about_failure() -> None:
    page = executed("failure")
    weir = FakeClient(on_failure="allow")

    def both() -> tuple[bool, bool]:
        return page["may_log_in"](weir, "bob"), page["may_search"](weir, "bob")

    assert both() == (True, True)
    weir.script.deny()
    assert both() == (False, False)
    weir.script.away()
    assert both() == (False, False)
    weir.script.away(code="DEADLINE_EXCEEDED")
    assert both() == (False, True)
    weir.script.mistake("NOT_FOUND")
    for ask in (page["may_log_in"], page["may_search"]):
        with pytest.raises(MistakeError):
            ask(weir, "bob")


async def test_s40_the_page_about_addresses() -> None:
    app, weir = FastAPI(), FakeAsyncClient()
    executed("addresses", app=app, weir=weir)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://x") as http:
        await http.get("/", headers={"X-Forwarded-For": "6.6.6.6, 203.0.113.9, 10.0.0.2"})
    assert [asked.consumer for asked in weir.asked] == ["203.0.113.9"]


def test_s40_the_page_about_budgets() -> None:
    page = executed("budgets")
    weir = FakeClient()
    bounds: list[int | None] = []

    def ask_model(max_tokens: int | None) -> Iterator[str]:
        bounds.append(max_tokens)
        yield from ("a", "b", "c")

    limits = (LimitStatus("output", True, 20_000, 0, cost=4096, granted=300),)
    weir.script.allow("bob", limits=limits, held_for=timedelta(minutes=2))
    assert page["answer"](weir, "bob", ask_model) == "abc"
    assert (bounds, weir.meters[0].settled) == ([300], {"output": 3})
    weir.script.deny("bob", retry_after=timedelta(seconds=4))
    assert page["answer"](weir, "bob", ask_model) == "later: 0:00:04"


def test_s40_the_page_about_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "clients" / "python-testing.md").read_text()
    config = re.search(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert config is not None
    (tmp_path / "weir.yaml").write_text(config[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(program("WEIR_BIN", "weir").parent), prepend=os.pathsep)
    names = executed("python-testing")
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test()
