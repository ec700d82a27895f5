"""The proxy of LiteLLM in a process of its own, with answers of its mock."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "clients/python/tests_litellm"))
READY = """
from weir_ratelimit import AsyncClient
from weir_ratelimit.litellm import WeirBudget
import os

weir = AsyncClient(os.environ["WEIR"], on_failure=os.environ.get("POLICY", "error"), timeout=1)
hook = WeirBudget(weir, resource="llm", consumer=lambda key, data: data.get("user"), input=None, output=None,
                  total="tokens", hold_for=int(os.environ.get("HOLD_SECONDS", "600")))
"""
#: Keys of LiteLLM's own limiter need no database if a function knows them.
OWN = """
from litellm.proxy._types import UserAPIKeyAuth

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, tpm_limit=int(api_key.rsplit("-", 1)[1]))
"""
KEY = "sk-the-key-of-the-tests-which-is-long-enough-for-a-proxy"
PROMPT = [{"role": "user", "content": "How many tokens has this question?"}]


def answer(prompt: int, completion: int) -> dict[str, Any]:
    """Returns an answer of a model that has used so many tokens."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    message = {"role": "assistant", "content": "hello"}
    return {"id": "x", "choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}


def model(name: str, mock: Any) -> dict[str, Any]:
    """Returns an entry of the configuration."""
    params = {"model": "openai/gpt-4o-mini", "api_key": "none", "mock_response": mock}
    return {"model_name": name, "litellm_params": params}


def prompt_tokens() -> int:
    """Returns what LiteLLM counts for the prompt."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm import token_counter

    return int(token_counter(model="gpt-4o-mini", messages=PROMPT))


class Proxy:
    """A proxy that runs."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1/chat/completions"

    def ask(self, name: str, key: str = KEY, **more: Any) -> httpx.Response:
        """Asks a model."""
        body = {"model": name, "messages": PROMPT, "user": "bob", **more}
        return httpx.post(self.url, json=body, headers={"Authorization": f"Bearer {key}"}, timeout=60)


@contextlib.contextmanager
def proxy(
    folder: Path, models: list[dict[str, Any]], hook: str | None, settings: dict[str, Any], **environment: str
) -> Iterator[Proxy]:
    """Starts a proxy. `hook` is the text of its file."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    if hook is None:
        (folder / "own.py").write_text(OWN)
        more: dict[str, Any] = {"general_settings": {"custom_auth": "own.user_api_key_auth"}}
    else:
        (folder / "weir_budget.py").write_text(hook)
        more = {"litellm_settings": {"callbacks": "weir_budget.hook"}}
    config = folder / "config.yaml"
    config.write_text(json.dumps({"model_list": models, "router_settings": settings, **more}))
    paths = [str(ROOT / "clients/python/src"), str(ROOT / ".cache/clients-litellm/stubs")]
    command = [
        sys.executable,
        "-c",
        "from litellm import run_server; run_server()",
        "--config",
        config,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MASTER_KEY": KEY,
        **environment,
    }
    with (folder / "proxy.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 120
        while True:
            assert process.poll() is None and time.monotonic() < end, (folder / "proxy.log").read_text()[-4000:]
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{port}/health/liveliness").status_code == 200:
                    break
            time.sleep(0.2)
        yield Proxy(port)
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(params=["ready", "example"])
def hook(request: pytest.FixtureRequest) -> str:
    """The ready hook, and the one of docs/examples."""
    return READY if request.param == "ready" else (ROOT / "docs/examples/litellm_budget.py").read_text()
