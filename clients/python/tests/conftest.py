"""What the tests start: the scripted server and a real `weir`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def program(variable: str, name: str) -> Path:
    """Returns a program that `make test` has built. One that is missing fails the test."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "tests" / name
    path = Path(os.environ.get(variable, built))
    assert path.exists(), f"{path} is missing: set {variable}, or build it as scripts/test-clients.sh does"
    return path


class Scripted:
    """The scripted server."""

    def __init__(self, grpc: str = "127.0.0.1:0") -> None:
        command = [str(program("WEIR_SCRIPTED_BIN", "weir-scripted")), "--grpc", grpc, "--http", "127.0.0.1:0"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self._read()["ready"]
        self.target: str = ready["grpc"]
        self.pid: int = ready["pid"]

    def do(self, **command: Any) -> Any:
        """Executes a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        reply = self._read()
        assert "error" not in reply, reply
        return reply

    def answer(self, **decision: Any) -> None:
        """Answers all questions with this decision."""
        self.do(answer={"decision": decision})

    def log(self) -> list[dict[str, Any]]:
        """Returns the questions."""
        log: list[dict[str, Any]] = self.do(log={})["log"]
        return log

    def end(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="session")
def _scripted() -> Iterator[Scripted]:
    server = Scripted()
    yield server
    server.end()


@pytest.fixture
def scripted(_scripted: Scripted) -> Iterator[Scripted]:
    """The scripted server, without rules."""
    yield _scripted
    _scripted.do(thaw={})
    _scripted.do(listen={})
    _scripted.do(clear={})


@pytest.fixture
def second() -> Iterator[Scripted]:
    """A second one."""
    server = Scripted()
    yield server
    server.end()


def free_port() -> int:
    """Returns a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
