"""The package: what it loads, its messages, and its telemetry."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Scripted
from opentelemetry import metrics, propagate, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import weir_ratelimit
from weir_ratelimit import AsyncClient, BudgetRefusedError, Client, LeaseLostError, LeaseRefusedError, MistakeError

PACKAGE = ROOT / "clients" / "python"


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_c55_importing_loads_no_framework() -> None:
    heavy = "{'fastapi', 'starlette', 'django', 'flask', 'opentelemetry', 'rest_framework'}"
    loaded = run(
        f"import sys, weir_ratelimit, weir_ratelimit.asgi, weir_ratelimit.testing; print({heavy} & set(sys.modules))"
    )
    assert loaded == "set()\n"


def test_c56_stubs_of_the_program_do_not_collide(tmp_path: Path) -> None:
    """A program has stubs of another version of the protocol."""
    (tmp_path / "weir" / "v1").mkdir(parents=True)
    proto = 'syntax = "proto3"; package weir.v1; message ShouldAllowRequest { bytes other = 1; }'
    (tmp_path / "weir" / "v1" / "rate_limit.proto").write_text(proto)
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{tmp_path}",
        f"--python_out={tmp_path}",
        "weir/v1/rate_limit.proto",
    ]
    subprocess.run(command, check=True)
    first = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    for order in (
        "weir_ratelimit._messages, weir.v1.rate_limit_pb2",
        "weir.v1.rate_limit_pb2, weir_ratelimit._messages",
    ):
        run(f"{first}import {order}")


def test_the_stubs_are_those_of_the_protocol(tmp_path: Path) -> None:
    """If it fails: clients/python/scripts/stubs.py makes them again."""
    subprocess.run([sys.executable, PACKAGE / "scripts" / "stubs.py", tmp_path], check=True)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_bytes() for file in (PACKAGE / "src/weir_ratelimit").glob("*.binpb")}


def test_the_wheel_is_pure_and_stands_alone(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PACKAGE, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    names = {file.name for file in (tmp_path / "site").rglob("*")}
    assert {"py.typed", "_descriptors.binpb", "_lease_descriptors.binpb", "LICENSE", "METADATA"} <= names
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import weir_ratelimit as w, weir_ratelimit.testing\n"
        "w.Client('127.0.0.1:1', on_failure='allow'); w.AsyncLease; w.AsyncMeter; print(w.__file__)"
    )
    assert run(program).startswith(str(tmp_path))


def test_c54_the_least_version_is_the_first_one_with_settlements() -> None:
    """If it fails after a release: LEAST_VERSION of both clients, and S-38, name the first version with `Settle`."""
    heading, *_ = (ROOT / "CHANGELOG.md").read_text().split("`Settle`")[0].rsplit("\n## ", 1)[1].split()
    released = re.findall(r"^## ([0-9.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    for file in ("python/src/weir_ratelimit/_costs.py", "typescript/src/budget.ts"):
        found = re.findall(r'LEAST_VERSION = "([0-9.]+)"', (ROOT / "clients" / file).read_text())
        if heading == "Unreleased":
            assert [int(part) for part in found[0].split(".")] > [int(part) for part in released[0].split(".")]
        else:
            assert found == [heading]


def test_it_has_types_and_only_public_names() -> None:
    assert (Path(weir_ratelimit.__file__).parent / "py.typed").exists()
    assert all(hasattr(weir_ratelimit, name) for name in weir_ratelimit.__all__)


@pytest.fixture(scope="module")
def recorded() -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracer = TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(tracer)
    metrics.set_meter_provider(MeterProvider([reader]))
    return spans, reader


def test_c58_c59_traces_and_metrics(
    recorded: tuple[InMemorySpanExporter, InMemoryMetricReader], scripted: Scripted
) -> None:
    spans, reader = recorded
    scripted.do(answer={"decision": {"reason": "REASON_LIMITED", "deniedBy": ["each"]}, "match": {"consumer": "bob"}})
    scripted.do(status={"code": "NOT_FOUND", "message": "no", "match": {"consumer": "carol"}})
    scripted.do(status={"code": "UNAVAILABLE", "message": "no", "match": {"consumer": "dave"}})

    async def ask() -> None:
        async with AsyncClient(scripted.target, on_failure="allow", timeout=10) as weir:
            await weir.allow("search", "bob")

    with Client(scripted.target, on_failure="allow", timeout=10) as weir:
        weir.allow("search", "bob")
        with pytest.raises(MistakeError):
            weir.allow("search", "carol")
        weir.allow("search", "dave")
    asyncio.run(ask())
    seen = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
    denied = {"weir.allowed": False, "weir.source": "weir", "weir.reason": "limited", "weir.denied_by": ("each",)}
    policy = {"weir.allowed": True, "weir.source": "policy", "weir.reason": "policy"}
    assert seen == [denied, {}, policy, denied]
    assert "traceparent" in dict(map(tuple, scripted.log()[0]["metadata"]))
    assert propagate.get_global_textmap() is not None
    data = reader.get_metrics_data()
    assert data is not None
    points = {
        metric.name: [dict(point.attributes or {}) for point in metric.data.data_points]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"outcome": "denied", "source": "weir", "reason": "limited"} in points["weir.client.decisions"]
    assert {"outcome": "error"} in points["weir.client.decisions"]
    assert points["weir.client.outages"] == [{"code": "UNAVAILABLE"}]
    assert "weir.client.duration" in points
    assert "bob" not in repr(points) + repr(seen)


def test_c59_how_a_lease_begins_is_traced_and_outages_of_its_renewals_are_counted(
    recorded: tuple[InMemorySpanExporter, InMemoryMetricReader], scripted: Scripted
) -> None:
    spans, reader = recorded

    def outages() -> float:
        data = reader.get_metrics_data()
        assert data is not None
        metrics = [one for all in data.resource_metrics for scope in all.scope_metrics for one in scope.metrics]
        points: Any = [metric.data.data_points for metric in metrics if metric.name == "weir.client.outages"]
        return sum(point.value for point in points[0] if dict(point.attributes) == {"code": "ABORTED"}) if points else 0

    async def lease() -> None:
        async with AsyncClient(scripted.target, on_failure="error", timeout=10) as weir, await weir.lease("db") as held:
            await held.lost.wait()

    for kind in ("threads", "asyncio"):
        spans.clear()
        scripted.do(clear={})
        scripted.do(status={"match": {"method": "Renew"}, "code": "ABORTED", "message": "no"})
        scripted.do(answer={"match": {"method": "Release"}, "decision": {}})
        granted = {"allowed": True, "id": "x", "reason": "REASON_OK", "expiresAfter": "0.3s"}
        scripted.do(answer={"match": {"method": "Acquire"}, "decision": granted})
        scripted.do(answer={"match": {"method": "Acquire"}, "decision": {"reason": "REASON_LIMITED"}, "times": 1})
        before = outages()
        with Client(scripted.target, on_failure="error", timeout=10) as weir, pytest.raises(LeaseRefusedError):
            weir.lease("db")
        if kind == "threads":
            with Client(scripted.target, on_failure="error", timeout=10) as weir, weir.lease("db") as held:
                assert held.lost.wait(10)
        else:
            with pytest.raises(LeaseLostError):
                asyncio.run(lease())
        seen = [(span.name, dict(span.attributes or {})) for span in spans.get_finished_spans()]
        denied = {"weir.allowed": False, "weir.source": "weir", "weir.reason": "limited"}
        allowed = {"weir.allowed": True, "weir.source": "weir", "weir.reason": "ok"}
        assert seen == [("weir.lease", denied), ("weir.lease", allowed)]
        assert all("traceparent" in dict(map(tuple, question["metadata"])) for question in scripted.log())
        assert outages() > before


def test_c59_meters_are_traced_and_settlements_are_counted(
    recorded: tuple[InMemorySpanExporter, InMemoryMetricReader], scripted: Scripted
) -> None:
    spans, reader = recorded
    spans.clear()
    held = {"allowed": True, "reason": "REASON_OK", "heldFor": "9s", "limits": [{"name": "output", "cost": "100"}]}
    with Client(scripted.target, on_failure="error", timeout=10) as weir:
        for outcome in ("SETTLED", "LATE", "UNKNOWN"):
            scripted.do(answer={"match": {"method": "ShouldAllow"}, "decision": held})
            settled = {"outcome": f"SETTLE_OUTCOME_{outcome}"}
            scripted.do(answer={"match": {"method": "Settle"}, "decision": settled})
            with weir.meter("llm", "bob", estimate={"output": 100}):
                pass
        scripted.do(status={"match": {"method": "Settle"}, "code": "NOT_FOUND", "message": "no"})
        with pytest.raises(MistakeError):
            weir.meter("llm", "bob", estimate={"output": 100}).settle()
        scripted.do(answer={"match": {"method": "ShouldAllow"}, "decision": {"reason": "REASON_LIMITED"}})
        with pytest.raises(BudgetRefusedError):
            weir.meter("llm", "bob", estimate={"output": 100})
    allowed = {"weir.allowed": True, "weir.source": "weir", "weir.reason": "ok"}
    denied = {"weir.allowed": False, "weir.source": "weir", "weir.reason": "limited"}
    seen = [(span.name, dict(span.attributes or {})) for span in spans.get_finished_spans()]
    assert seen == [("weir.meter", allowed)] * 4 + [("weir.meter", denied)]
    assert all("traceparent" in dict(map(tuple, question["metadata"])) for question in scripted.log())
    data = reader.get_metrics_data()
    assert data is not None
    found = [one for all in data.resource_metrics for scope in all.scope_metrics for one in scope.metrics]
    points: Any = [metric.data.data_points for metric in found if metric.name == "weir.client.settlements"]
    counts = {dict(point.attributes)["event"]: point.value for point in points[0]}
    assert counts == {"settled": 1, "late": 1, "unknown": 1, "mistake": 1}


def test_c59_telemetry_can_be_off(
    recorded: tuple[InMemorySpanExporter, InMemoryMetricReader], scripted: Scripted
) -> None:
    spans, _ = recorded
    spans.clear()
    scripted.answer(allowed=True)
    with Client(scripted.target, on_failure="allow", timeout=10, telemetry="off") as weir:
        weir.allow("search", "bob")
    assert not spans.get_finished_spans()
