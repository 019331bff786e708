"""What the parts make of their figures; and those that need no framework, on the fake driver."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cuda_on_fakes import Machine, environment_with_fakes, on_fakes
from gpu.proof.driver import PrimaryContext, Spinner
from gpu.proof.machine import ROOT
from gpu.proof.parts import framework_work, frameworks, other_timers, truth
from gpu.proof.record import PartRecord, read


@pytest.fixture
def record(tmp_path: Path) -> PartRecord:
    return PartRecord(tmp_path / "part.json", 1, "made up")


def goals_of(record: PartRecord, tmp_path: Path) -> dict[str, Any]:
    record.save()
    return {goal["goal"]: goal for goal in (read(tmp_path / "part.json") or {})["goals"]}


def proof(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    places = ["--work", str(folder / "work"), "--to", str(folder / "pages")]
    return subprocess.run(
        [sys.executable, "-m", "tests.gpu.proof", "--installed", "--parts", "2", *places, *options],
        env=environment_with_fakes(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.sanitized
def test_on_a_device_that_behaves_as_documented_every_figure_of_the_truth_is_right(tmp_path: Path) -> None:
    run = proof(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    file = tmp_path / "pages/fairlap-fake-device-0.json"
    content = (read(file) or {})["parts"][1]
    assert content["status"] == "finished", content["reason"]
    assert all(goal["reached"] for goal in content["goals"]), content["goals"]
    methods = {row["method"] for row in content["tables"]["truth"]}
    assert {"kernel_sum", "context_span", "device_span, gate spin", "device_span, no gate"} <= methods
    # Behind a gate the fake's spans are as long as its kernels, to the step of its event timestamps.
    gated = [row for row in content["tables"]["truth"] if row["method"] == "device_span, gate stream_wait"]
    assert all(abs(row["error_ns"]) <= 32 for row in gated)
    assert "# The GPU proof on fairlap fake device 0" in file.with_suffix(".md").read_text()
    assert "gated device_span: largest error over its floor, from 5 us" in run.stdout
    # On another machine only the file is left, and is enough to go on from.
    (tmp_path / "work").rename(tmp_path / "gone with its machine")
    again = proof(tmp_path, "--resume")
    assert "part 2, Truth: kernels of known length: finished before" in again.stdout
    assert (read(file) or {})["parts"][1] == content
    assert {row["figure"] for row in content["tables"]["floor"]} >= {"event_quantum_ns", "timer_step_ns", "gate"}


@pytest.mark.slow
@on_fakes
def test_the_truth_does_not_depend_on_the_step_of_the_devices_timer() -> None:
    """%globaltimer steps by 1024 ns on an A100 and an RTX 4090, and read between steps it is old by up to one."""
    machine = Machine()
    machine.cuda.fake_cuda_set_globaltimer_step.argtypes = (ctypes.c_int64,)
    machine.cuda.fake_cuda_set_globaltimer_step(1024)
    truth.LENGTHS_NS, truth.TURNS, truth.SECONDS_FOR_ONE = (500, 5_000, 100_000), 1, 0.002
    with tempfile.TemporaryDirectory() as folder:
        record = PartRecord(Path(folder) / "part.json", 2, "made up")
        context = PrimaryContext()
        bench = truth._Bench(context, Spinner(), context.new_stream(), record)
        bench.truth(truth.WAYS[0])
        rows = record.rows("truth")
    assert [row["truth_ns"] for row in rows] == pytest.approx(truth.LENGTHS_NS, abs=2)
    assert all(abs(row["error_ns"]) <= 2 for row in rows)


def probed(name: str) -> list[dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, "-m", f"tests.gpu.probes.{name}"],
        env=environment_with_fakes(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.sanitized
def test_the_probe_finds_the_step_of_event_timestamps() -> None:
    first = probed("event_quantum")[0]
    assert first["ns"] == pytest.approx(32, abs=0.1)


@pytest.mark.sanitized
def test_the_probe_sees_context_wide_events_cover_every_kind_of_stream() -> None:
    content = {row["case"]: row for row in probed("context_events")}
    assert len(content) == 11
    for case, row in content.items():
        assert row["ns"] == pytest.approx(row["expected_ns"], abs=20_000), case


@pytest.mark.sanitized
def test_the_program_that_a_checker_watches_makes_every_kind_of_call() -> None:
    content = probed("every_call")
    assert len(content) == 10
    assert not [row for row in content if "refused" in row]


def reading(method: str, case: str, ns: float, **more: Any) -> dict[str, Any]:
    framework, quantity = more.pop("framework", "torch"), more.pop("quantity", "span")
    cells = {"method": method, "case": case, "ns": ns, "framework": framework, "quantity": quantity, "note": ""}
    return {"host_ns_per_sample": None, **cells, **more}


def test_a_timer_is_compared_with_ours_of_the_same_quantity(record: PartRecord, tmp_path: Path) -> None:
    for method, ns in (("fairlap device_span", 1000.0), ("torch.cuda.Event", 1500.0), ("fairlap device_span", 1100.0)):
        record.row("readings", **reading(method, "layernorm", ns))
    record.row("readings", **reading("torch.profiler", "layernorm", 900.0, quantity="kernels"))
    record.row("readings", **reading("torch.cuda.Event", "layernorm", float("nan")))  # no sample of it was valid
    other_timers._compared(record)
    rows = {row["method"]: row for row in record.rows("side by side")}
    assert rows["torch.cuda.Event"]["reference_ns"] == 1050
    assert rows["torch.cuda.Event"]["difference_share"] == pytest.approx(1500 / 1050 - 1)
    assert rows["fairlap device_span"]["difference_share"] is None
    assert rows["fairlap device_span"]["spread_of_processes"] == pytest.approx(100 / 1050)
    assert rows["torch.profiler"]["reference_ns"] is None  # kernel time is not a span


@pytest.mark.parametrize(("ours", "reached"), [(300.0, True), (400.0, False), (None, None)])
def test_the_cost_of_a_sample_is_a_share_of_what_events_by_hand_cost(
    record: PartRecord, tmp_path: Path, ours: float | None, reached: bool | None
) -> None:
    for method, cost in (("fairlap device_span", ours), ("torch.cuda.Event", 1300.0)):
        record.row("readings", **reading(method, "empty kernel", 1000.0, host_ns_per_sample=cost))
    other_timers._compared(record)
    assert [goal["reached"] for goal in goals_of(record, tmp_path).values()] == [reached]


def test_a_framework_that_exposes_its_stream_must_have_run_on_it(record: PartRecord, tmp_path: Path) -> None:
    for case, streams in (("torch", [7]), ("cupy", [7, 9]), ("jax", [7]), ("tensorflow", [7])):
        handed_over = None if case == "tensorflow" else 7
        record.row("methods", case=case, method="kernel_sum", figure_ns=1.0, streams=streams, handed_over=handed_over)
    for case in ("torch", "cupy"):
        record.row("methods", case=case, method="device_span, gate auto", figure_ns=1.02, difference_share=0.02)
    for case, reference_ns in (("jax", 600_000.0), ("tensorflow", 300_000.0)):
        row = {"case": case, "figure_ns": 1.2 * reference_ns, "reference_ns": reference_ns}
        record.row("methods", method="context_span, waited for", difference_share=0.2, **row)
    record.row("methods", case="tensorflow", method=framework_work.SEARCH, figure_ns=None, note="on 2 streams")
    frameworks._goals(record)
    goals = goals_of(record, tmp_path)
    reached = {name.split(":")[0]: goal["reached"] for name, goal in goals.items() if "stream" in name}
    assert reached == {"torch": True, "cupy": False, "jax": True, "tensorflow": None}
    assert goals["tensorflow: device_span, gate auto against the busy time in records"]["why"] == "on 2 streams"
    spans = {
        name: goal["reached"] for name, goal in goals_of(record, tmp_path).items() if "against the busy time" in name
    }
    assert list(spans.values()) == [True, True, None, False, None, True]  # 60 us is what dispatch takes, 120 us is not
