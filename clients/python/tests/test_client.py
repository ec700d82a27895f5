"""Both clients beside the scripted server, where a scenario needs the language. Names begin with the rules."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from conftest import Scripted, free_port, program

from weir_ratelimit import (
    AsyncClient,
    Client,
    ClosedError,
    ConfigurationError,
    DeniedError,
    MistakeError,
    OutageError,
    Tls,
    _async_client,
    _client,
)
from weir_ratelimit._channel import channel_options
from weir_ratelimit._in_flight import InFlight
from weir_ratelimit.testing import client as client_with_clock

OK = {"allowed": True, "reason": "REASON_OK"}


def test_c1_the_constructor_does_not_wait() -> None:
    started = time.monotonic()
    Client("dns://192.0.2.1/nowhere.invalid:1", on_failure="allow").close()
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("target", "options", "word"),
    [
        ("weir:8081", {}, "on_failure"),
        ("weir:8081", {"on_failure": "open"}, "on_failure"),
        ("weir", {"on_failure": "allow"}, "target"),
        ("http://weir:8081", {"on_failure": "allow"}, "target"),
        ("ipv4:::1:80", {"on_failure": "allow"}, "target"),
        ("unix:", {"on_failure": "allow"}, "target"),
        (7, {"on_failure": "allow"}, "target"),
        ("weir:8081", {"on_failure": "allow", "timeout": 0}, "timeout"),
        ("weir:8081", {"on_failure": "allow", "timeout": "1"}, "timeout"),
        ("weir:8081", {"on_failure": "allow", "timeout": True}, "timeout"),
        ("weir:8081", {"on_failure": "allow", "breaker": 1}, "breaker"),
        ("weir:8081", {"on_failure": "allow", "telemetry": "on"}, "telemetry"),
        ("weir:8081", {"on_failure": "allow", "strategy": 1}, "strategy"),
        ("weir:8081", {"on_failure": "allow", "token": "s3cret"}, "plain text to weir:8081"),
        ("weir:8081", {"on_failure": "allow", "token": "s3 cret", "tls": Tls()}, "token"),
        ("weir:8081", {"on_failure": "allow", "tls": Tls(key=b"s3cret")}, "tls"),
        ("weir:8081", {"on_failure": "allow", "tls": Tls(roots="/nowhere/s")}, "tls.roots"),
    ],
)
def test_c1_c2_c57_wrong_options_fail_at_once(target: Any, options: dict[str, Any], word: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises((ConfigurationError, TypeError), match=word) as raised:
            kind(target, **options)
        assert "s3" not in str(raised.value)
        assert isinstance(raised.value, ConfigurationError) or not options


def test_c57_no_secret_is_shown() -> None:
    client = Client("localhost:1", on_failure="allow", token="s3cret")
    assert "s3cret" not in repr(client) + repr(client._core.settings) + repr(Tls(key=b"s3cret"))


@pytest.mark.parametrize(
    "target",
    ["[::1]:8081", "dns:///weir:8081", "dns://127.0.0.1:53/weir:8081", "ipv4:127.0.0.1:1,127.0.0.2:1", "unix:/run/w"],
)
def test_targets(target: str) -> None:
    Client(target, on_failure="allow").close()


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ({"cost": -1}, "cost"),
        ({"cost": 1.5}, "cost"),
        ({"cost": 1 << 64}, "cost"),
        ({"strategy": 1}, "strategy"),
        ({"id": 1}, "id"),
        ({"attributes": {"a": 1}}, "attributes"),
        ({"peek": 1}, "peek"),
        ({"timeout": 0}, "timeout"),
        ({"on_failure": "open"}, "on_failure"),
        ({"resource": None}, "resource"),
        ({"attributes": {"a": "x" * 65_536}}, None),
    ],
)
def test_c4_wrong_questions_are_mistakes(call: dict[str, Any], field: str | None) -> None:
    with Client("127.0.0.1:1", on_failure="allow") as client, pytest.raises(MistakeError) as raised:
        client.allow(**{"resource": "search", **call})
    assert raised.value.field == field


def test_c5_the_cause_is_kept(scripted: Scripted) -> None:
    scripted.do(status={"code": "UNAVAILABLE", "message": "gone"})
    with Client(scripted.target, on_failure="error") as client, pytest.raises(OutageError) as raised:
        client.allow("search", "bob", timeout=5)
    assert raised.value.cause is not None


def test_c9_times_are_timedeltas_or_seconds(scripted: Scripted) -> None:
    scripted.answer(**OK)
    with Client(scripted.target, on_failure="error", timeout=timedelta(seconds=5)) as client:
        assert client.allow("search", timeout=5.0)
        assert client.allow("search", timeout=timedelta(seconds=5))


def test_raise_if_denied(scripted: Scripted) -> None:
    scripted.answer(reason="REASON_LIMITED", message="no")
    with Client(scripted.target, on_failure="error", timeout=5) as client:
        with pytest.raises(DeniedError, match="no") as raised:
            client.allow("search").raise_if_denied()
        assert raised.value.decision.reason == "limited"


async def test_c12_c15_the_caller_cancels(scripted: Scripted) -> None:
    scripted.do(silent={})
    async with AsyncClient(scripted.target, on_failure="allow", timeout=30) as client:
        await client.ready(10)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.allow("search", "bob")
        task = asyncio.ensure_future(client.allow("search", "bob"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in others if "allow" in repr(task)]
        assert not client._core._breaker._outages  # type: ignore[union-attr]
        assert client._in_flight == 0


class _Cancelled(grpc.RpcError):
    pass


class _Answering:
    """A call that has an answer, or waits until it is cancelled."""

    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers
        self._cancelled = threading.Event()

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> bytes:
        if self._answers:
            return self._answers.pop()
        if not self._cancelled.wait(0 if self._answers is _ANSWERED else 3):
            raise StopIteration
        raise _Cancelled

    def cancel(self) -> None:
        self._cancelled.set()


_ANSWERED: list[bytes] = []


def test_c11_a_timeout_holds_after_calls_that_were_fast() -> None:
    """The thread that watches over timeouts wakes up for a call that has ended already."""
    flight = InFlight()

    def ask(answers: list[bytes], timeout: float) -> bytes:
        method: Any = SimpleNamespace(stream=lambda *_, **__: _Answering(answers))
        return flight.ask(method, b"", timeout, ())

    for _ in range(5):
        _ANSWERED.append(b"a")
        assert ask(_ANSWERED, 0.01) == b"a"
        time.sleep(0.05)
    started = time.monotonic()
    with pytest.raises(OutageError, match="DEADLINE_EXCEEDED"):
        ask([], 0.1)
    assert time.monotonic() - started < 2


def test_c11_many_timeouts_at_once(scripted: Scripted) -> None:
    scripted.do(silent={})
    with Client(scripted.target, on_failure="allow", timeout=5, breaker=False) as client:
        assert client.ready(10)
        times: list[float] = []

        def ask(timeout: float) -> None:
            started = time.monotonic()
            assert client.allow("search", timeout=timeout).source == "policy"
            times.append(time.monotonic() - started - timeout)

        # Later ones are due earlier.
        threads = [threading.Thread(target=ask, args=(0.9 - step * 0.02,)) for step in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(times) == 40 and max(times) < 0.6
        assert not client._in_flight._calls


async def test_c14_a_stalled_loop_loses_no_answer(scripted: Scripted) -> None:
    scripted.do(answer={"decision": OK, "delay_ms": 20})
    async with AsyncClient(scripted.target, on_failure="deny", timeout=0.1) as client:
        await client.ready(10)
        for _ in range(5):
            task = asyncio.ensure_future(client.allow("search", "bob"))
            await asyncio.sleep(0.01)
            time.sleep(0.4)
            assert (await task).source == "weir"


def test_c14_a_stopped_process_loses_no_answer(scripted: Scripted) -> None:
    scripted.do(answer={"decision": OK, "delay_ms": 200})
    program = (
        "import sys; from weir_ratelimit import Client\n"
        "client = Client(sys.argv[1], on_failure='deny', timeout=0.5); client.ready(20); print('ready', flush=True)\n"
        "for line in sys.stdin: print(client.allow('search').source, flush=True)"
    )
    command = [sys.executable, "-c", program, scripted.target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # gRPC alone would lose some of them.
        for asked in range(1, 9):
            process.stdin.write("go\n")
            process.stdin.flush()
            _eventually(lambda asked=asked: len(scripted.log()) == asked)
            process.send_signal(signal.SIGSTOP)
            # The answer comes, and the time passes, while it is stopped.
            time.sleep(0.6)
            process.send_signal(signal.SIGCONT)
            assert process.stdout.readline() == "weir\n"
        process.stdin.close()


def test_c29_close_twice_and_calls_after_it(scripted: Scripted) -> None:
    scripted.answer(**OK)
    client = Client(scripted.target, on_failure="allow")
    client.allow("search")
    client.close()
    client.close()
    with pytest.raises(ClosedError):
        client.allow("search")
    with pytest.raises(ClosedError):
        client.ready(1)


def test_close_waits_for_calls_in_flight(scripted: Scripted) -> None:
    scripted.do(answer={"decision": OK, "delay_ms": 200})
    client = Client(scripted.target, on_failure="error", timeout=10)
    assert client.ready(10)
    sources: list[str] = []
    thread = threading.Thread(target=lambda: sources.append(client.allow("search").source))
    thread.start()
    _eventually(lambda: len(client._in_flight._calls) == 1)
    client.close()
    thread.join()
    assert sources == ["weir"]


def test_c28_the_process_ends_by_itself(scripted: Scripted) -> None:
    scripted.answer(**OK)
    threads = (
        "from weir_ratelimit import Client\nprint(Client(T, on_failure='error', timeout=20).allow('search').source)"
    )
    loop = (
        "import asyncio; from weir_ratelimit import AsyncClient\n"
        "async def main(): print((await AsyncClient(T, on_failure='error', timeout=20).allow('search')).source)\n"
        "asyncio.run(main())"
    )
    for code in (threads, loop):
        command = [sys.executable, "-c", f"T = {scripted.target!r}\n{code}"]
        assert subprocess.run(command, capture_output=True, text=True, timeout=30).stdout == "weir\n"


_FORK = """
import os, sys
from weir_ratelimit import Client
client = Client(sys.argv[1], on_failure="deny", timeout=5)
if sys.argv[2] == "after":
    print("parent", client.allow("search").source, flush=True)
inherited = client._channel
child = os.fork()
if child == 0:
    client.allow("search", timeout=1)
    print("child", client._channel is not inherited, client.allow("search").source, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", client.allow("search").source, flush=True)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_c27_a_child_has_a_channel_of_its_own(when: str, scripted: Scripted) -> None:
    scripted.answer(**OK)
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}
    command = [sys.executable, "-c", _FORK, scripted.target, when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    lines = done.stdout.split("\n")
    children = [line for line in lines if line.startswith("child")]
    assert children == ["child True weir"], done
    assert lines[-2] == "parent weir", done


def test_c20_loops_have_channels_of_their_own(scripted: Scripted) -> None:
    scripted.answer(**OK)
    client = AsyncClient(scripted.target, on_failure="error", timeout=10)
    for _ in range(3):
        assert asyncio.run(client.allow("search")).source == "weir"
    assert len(client._channels) <= 1


async def test_c20_one_channel_made_at_the_first_use(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted.answer(**OK)
    opened: list[object] = []
    for module in (_client, _async_client):

        def counted(*options: Any, original: Any = module.open_channel) -> Any:
            opened.append(original(*options))
            return opened[-1]

        monkeypatch.setattr(module, "open_channel", counted)
    with Client(scripted.target, on_failure="error", timeout=10) as client:
        assert not opened
        for _ in range(3):
            client.allow("search")
        assert len(opened) == 1
    async with AsyncClient(scripted.target, on_failure="error", timeout=10) as weir:
        assert len(opened) == 1
        await asyncio.gather(*(weir.allow("search") for _ in range(3)))
        await weir.allow("search")
        assert len(opened) == 2


def test_c21_c22_c23_the_options_of_a_channel() -> None:
    options: dict[str, Any] = dict(channel_options(ejection=False))
    assert json.loads(options["grpc.service_config"]) == {"loadBalancingConfig": [{"round_robin": {}}]}
    ejecting: dict[str, Any] = dict(channel_options(ejection=True))
    (policy,) = json.loads(ejecting["grpc.service_config"])["loadBalancingConfig"]
    assert policy["outlier_detection_experimental"]["failurePercentageEjection"]["minimumHosts"] == 2
    assert options["grpc.service_config_disable_resolution"] == 1
    assert options["grpc.enable_http_proxy"] == 0
    assert options["grpc.dns_min_time_between_resolutions_ms"] == 1000
    assert options["grpc.initial_reconnect_backoff_ms"] == 100
    # gRPC adds up to a fifth.
    assert options["grpc.max_reconnect_backoff_ms"] * 1.2 <= 1000
    times = [options[f"grpc.keepalive_{name}"] for name in ("time_ms", "timeout_ms", "permit_without_calls")]
    assert times == [10_000, 2000, 1]


def test_c25_back_within_two_seconds(scripted: Scripted) -> None:
    scripted.answer(**OK)
    with Client(scripted.target, on_failure="allow", timeout=0.5) as client:
        assert client.ready(10)
        scripted.do(refuse={})
        end = time.monotonic() + 3
        while time.monotonic() < end:
            assert client.allow("search").source == "policy"
            time.sleep(0.05)
        assert client._core._breaker.is_open  # type: ignore[union-attr]
        scripted.do(listen={})
        _eventually(lambda: client.allow("search").source == "weir", 2)


def test_c30_to_c33_the_breaker(scripted: Scripted) -> None:
    now = [0.0]
    scripted.do(status={"code": "UNAVAILABLE", "message": "gone"})
    client = client_with_clock(scripted.target, clock=lambda: now[0], on_failure="allow", timeout=10, telemetry="off")
    for step in range(5):
        now[0] = step * 0.124
        client.allow("search")
    now[0] = 0.499
    client.allow("search")
    # Six outages, but not yet 500 ms.
    assert len(scripted.log()) == 6
    now[0] = 0.5
    client.allow("search")
    assert len(scripted.log()) == 7
    before = time.thread_time()
    for _ in range(1000):
        decision = client.allow("search")
    assert time.thread_time() - before < 0.5
    assert decision.failure is not None and decision.failure.cause is not None
    assert len(scripted.log()) == 7
    asked = []
    for millisecond in range(500, 10_500, 10):
        now[0] = millisecond / 1000
        client.allow("search")
        asked.append(len(scripted.log()))
    # 100, 300, 700, 1,500, and then one in a second.
    assert asked[-1] - 7 == 3 + 9
    scripted.do(clear={})
    now[0] += 1
    with pytest.raises(MistakeError):
        client.allow("search")
    scripted.answer(**OK)
    assert client.allow("search").source == "weir"
    client.close()


def test_c33_mistakes_open_nothing(scripted: Scripted) -> None:
    with Client(scripted.target, on_failure="allow", timeout=10) as client:
        for _ in range(10):
            with pytest.raises(MistakeError):
                client.allow("search")
            time.sleep(0.06)
        assert not client._core._breaker.is_open  # type: ignore[union-attr]


def test_c30_the_breaker_can_be_off(scripted: Scripted) -> None:
    scripted.do(status={"code": "UNAVAILABLE", "message": "gone"})
    with Client(scripted.target, on_failure="allow", timeout=10, breaker=False) as client:
        for _ in range(12):
            client.allow("search")
            time.sleep(0.05)
    assert len(scripted.log()) == 12


def test_c24_a_hung_node_of_two_is_left_out(scripted: Scripted, second: Scripted) -> None:
    """Shortened: 20 calls/s for 5 s, of which those after 2 s count. The breaker stays closed."""
    for server in (scripted, second):
        server.answer(**OK)
    addresses = ",".join(server.target for server in (scripted, second))
    with Client(f"ipv4:{addresses}", on_failure="allow", timeout=0.25) as client:
        assert client.ready(10)
        _eventually(lambda: bool(client.allow("search") and scripted.log() and second.log()), 10)
        second.do(freeze={})
        started = time.monotonic()
        late = []
        while (passed := time.monotonic() - started) < 5:
            decision = client.allow("search")
            if passed > 2:
                late.append(decision.source == "policy")
            time.sleep(0.03)
        second.do(thaw={})
        assert not client._core._breaker.is_open  # type: ignore[union-attr]
    assert len(late) > 20
    assert sum(late) < 0.2 * len(late)


async def test_c19_c21_c24_s23_a_rolling_restart_costs_no_answer(tmp_path: Path) -> None:
    """Two nodes at 200 calls/s."""
    (tmp_path / "weir.yaml").write_text(_OPEN)
    ports = [free_port(), free_port()]
    nodes = [await _start_weir(tmp_path, port) for port in ports]
    target = ",".join(f"127.0.0.1:{port}" for port in ports)
    failures: list[str] = []
    async with AsyncClient(f"ipv4:{target}", on_failure="allow", timeout=2) as client:
        assert await client.ready(20)

        async def ask() -> None:
            decision = await client.allow("open")
            if decision.failure is not None:
                failures.append(str(decision.failure))

        async def load() -> None:
            asked, started = set(), time.monotonic()
            count = 0
            while not done.is_set():
                while count < (time.monotonic() - started) * 200:
                    count += 1
                    asked.add(asyncio.ensure_future(ask()))
                await asyncio.sleep(0.005)
            await asyncio.gather(*asked)
            assert count > 600

        done = asyncio.Event()
        loading = asyncio.ensure_future(load())
        for index in range(2):
            await asyncio.sleep(0.3 + 4.7 * index)
            nodes[index].terminate()
            await nodes[index].wait()
            nodes[index] = await _start_weir(tmp_path, ports[index])
        await asyncio.sleep(0.5)
        done.set()
        await loading
    for node in nodes:
        node.kill()
        await node.wait()
    assert not failures


_OPEN = """
strategies:
  open: { limits: [{ name: all, per: [], token_bucket: { rate: 1_000_000/1s, burst: 1_000_000 } }] }
resources:
  - { match: open, strategy: open }
"""


async def _start_weir(folder: Path, port: int) -> asyncio.subprocess.Process:
    flags = ["--listen", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0", "--drain-delay", "0s", "--log", "warn"]
    path, pipe = program("WEIR_BIN", "weir"), asyncio.subprocess.PIPE
    node = await asyncio.create_subprocess_exec(path, "serve", "--config", folder / "weir.yaml", *flags, stdout=pipe)
    assert node.stdout is not None
    assert b"weir" in await node.stdout.readline()
    return node


def test_c27_a_function_gives_the_token(scripted: Scripted) -> None:
    scripted.answer(**OK)
    tokens = iter(["one", "two"])
    with Client(scripted.target, on_failure="deny", timeout=10, token=lambda: next(tokens)) as client:
        client.allow("search")
        client.allow("search")
        decision = client.allow("search")
    assert decision.source == "policy"
    assert decision.failure is not None and decision.failure.code == "UNAUTHENTICATED"
    values = [dict(map(tuple, question["metadata"]))["authorization"] for question in scripted.log()]
    assert values == ["Bearer one", "Bearer two"]


def test_refused_credentials_are_logged_once_a_minute(scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    scripted.do(status={"code": "UNAUTHENTICATED", "message": "who?"})
    with Client(scripted.target, on_failure="allow", timeout=10) as client:
        for _ in range(3):
            assert client.allow("search").source == "policy"
    assert [record.levelname for record in caplog.records if record.name == "weir_ratelimit"] == ["ERROR"]


def _eventually(holds: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
