"""A real `weir` for integration tests, on a clock that the test moves."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import tempfile
import threading
from datetime import timedelta
from types import TracebackType
from typing import IO, Self

from ._errors import WeirError

_START = 30.0
_ANSWER = 10.0


class Server:
    """A `weir` that `serve` has started. It ends with its test, also if the test is killed."""

    def __init__(self, process: subprocess.Popen[str], lines: queue.Queue[str], address: str) -> None:
        self._process, self._lines = process, lines
        #: Where it listens: the target of a client.
        self.address = address

    def advance(self, time: timedelta | float) -> None:
        """Moves the clock of all limits, by seconds or a timedelta. It returns when the clock stands there."""
        seconds = time.total_seconds() if isinstance(time, timedelta) else float(time)
        if self._process.stdin is None or self._process.stdin.closed:
            raise WeirError("the server is closed")
        try:
            self._process.stdin.write(f"advance {seconds!r}\n")
            self._process.stdin.flush()
            answer = self._lines.get(timeout=_ANSWER)
        except (OSError, queue.Empty) as error:
            # Its answer would be taken for that to the next line.
            self._process.kill()
            raise WeirError("the server does not answer") from error
        if answer != "ok":
            raise WeirError(answer or "the server has ended")

    def close(self) -> None:
        """Ends it."""
        if self._process.stdin is not None:
            # What a dead server has not read cannot be flushed.
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_ANSWER)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(binary: str | os.PathLike[str], config: str | os.PathLike[str]) -> Server:
    """Starts a `weir` that is there with the file `config`, on a free port. Nothing is downloaded.

    Its states are in memory, and its clock stands still until `advance` moves it, so a limit of an hour is tested in
    milliseconds. Raises WeirError with what `weir` says if it does not start.
    """
    command = [os.fspath(binary), "serve", "--test-clock", "--log", "error", "--config", os.fspath(config)]
    command += ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=said, text=True)  # noqa: S603
        assert process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        try:
            first = lines.get(timeout=_START)
        except queue.Empty:
            first = ""
        if first.startswith("serving "):
            return Server(process, lines, first.removeprefix("serving "))
        process.kill()
        process.communicate()
        said.seek(0)
        raise WeirError(f"weir has not started: {said.read(4096).strip() or first or 'it says nothing'}")


def _read(output: IO[str], lines: queue.Queue[str]) -> None:
    """Reads the answers. An empty one is the end. Other lines are those of a log."""
    with output:
        for line in output:
            text = line.rstrip("\n")
            if text.startswith(("serving ", "ok", "error ")):
                lines.put(text)
    lines.put("")
