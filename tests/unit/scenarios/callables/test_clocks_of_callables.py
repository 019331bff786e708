"""Callables on a GPU are compared at its clock: with the fake driver, and NVML's binary interface in a fake library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_on_fakes import Machine, on_fakes
from fairlap.engine.cuda.stream_measurement import StreamMeasurement
from fairlap.engine.measurement import Measurement
from fairlap.machine.hardware.cuda_devices import Board
from fairlap.meters import sample_clocks
from fairlap.scenarios.callables import device_blocks
from fairlap.scenarios.callables.in_process import compare
from fairlap.scenarios.callables.judging import Judge, outcome
from fairlap.scenarios.callables.turns import Arm
from fairlap.verdict import Verdict
from watched_machine import fake_nvml_path, fresh_fake_nvml

BLOCKS = 24


def arm(name: str, cycles: float, mhz: float, *, known: int = BLOCKS) -> Arm:
    """Of a callable that takes so many cycles at this clock, which was read in so many blocks."""
    rng = np.random.default_rng(len(name))
    each = cycles * np.exp(0.0005 * rng.standard_normal(BLOCKS))
    found = Arm(name, lambda: None, None, quantity="device_span_ns")
    found.medians_ns = [float(value) for value in 1e3 * each / mhz]
    found.cycles = [float(value) for value in each[:known]]
    return found


@pytest.mark.parametrize(
    ("known", "verdict", "codes"),
    [(BLOCKS, Verdict.INCONCLUSIVE, ["W_CLOCKS_DISAGREE"]), (BLOCKS - 1, Verdict.FASTER, []), (0, Verdict.FASTER, [])],
)
def test_a_difference_that_the_clock_made_is_inconclusive_where_it_is_known(
    known: int, verdict: Verdict, codes: list[str]
) -> None:
    arms = [arm("cool", 1e5, 1980.0, known=known), arm("heated", 1e5, 1755.0, known=known)]
    [found], standing, (why_none, _) = outcome(Judge(0.05, 0.005, False, False), arms, BLOCKS)
    assert (found.verdict, why_none) == (verdict, "")
    assert [each.code for each in found.warnings if each.code.startswith("W_CLOCKS")] == codes
    assert standing is not None
    assert (standing.winner is None) is bool(codes)


@on_fakes
def test_a_device_that_stays_slow_gets_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, nvml = Machine(), fresh_fake_nvml()
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.setattr(sample_clocks, "board_of", lambda _: Board(0))
    monkeypatch.setattr(sample_clocks, "_PERIOD_S", 0.002)
    monkeypatch.setattr(device_blocks, "_RECOVERY_S", 0.0)
    monkeypatch.setattr(device_blocks, "_MOST_LEFT_OUT", 3)
    nvml.fake_nvml_set_reading(0, b"throttle_reasons", 0x40)
    callables = {"fast": lambda: machine.kernel(20_000), "slow": lambda: machine.kernel(40_000)}
    found = compare(callables, stream=machine.stream, blocks=40, seconds=0.01, calls_per_sample=1)
    assert (found.blocks, found.comparisons, found.no_verdict_code) == (0, (), "E_GPU_THROTTLED")


@on_fakes
def test_where_one_callable_waits_for_the_device_the_spans_of_all_have_launch_gaps() -> None:
    """On an H100 a kernel of 5.7 us took 28.7 us where the stream was not held."""
    machine = Machine()

    def waiting() -> None:
        machine.kernel(20_000)
        machine.synchronize()

    def held() -> None:
        machine.kernel(20_000)

    callables = {"held": held, "waiting": waiting}
    given: dict[str, Any] = {
        "stream": machine.stream,
        "seconds": 0.005,
        "calls_per_sample": 1,
        "gate_timeout_s": 0.2,
    }
    for untils in ([{"blocks": 6}], [{"budget": budget_s} for budget_s in (1.0, 8.0, 60.0)]):
        for until in untils:  # the shortest budget in which this machine has so many blocks
            found = compare(callables, **given, **until)
            if found.blocks >= 6:
                break
        assert found.blocks >= 6
        assert len(found.comparisons) == 1
        codes = [[each.code for each in row.warnings if each.code == "W_UNLIKE_GATES"] for row in found.rows]
        assert codes == [["W_UNLIKE_GATES"]] * 2
    del given["gate_timeout_s"]  # a busy host needs longer
    alike = compare({"held": held, "too": lambda: held()}, **given, blocks=6)
    assert "W_UNLIKE_GATES" not in {each.code for row in alike.rows for each in row.warnings}


@on_fakes
def test_a_sample_on_a_stream_knows_when_it_began_and_at_which_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, nvml = Machine(), fresh_fake_nvml()
    monkeypatch.setenv("FAIRLAP_LIBNVML", fake_nvml_path())
    monkeypatch.setattr(sample_clocks, "board_of", lambda _: Board(0))
    monkeypatch.setattr(sample_clocks, "_PERIOD_S", 0.002)
    nvml.fake_nvml_set_reading(0, b"sm_mhz", 1755)
    kept: list[Measurement] = []
    applied = sample_clocks.SampleClocks.applied

    def keeping(clocks: sample_clocks.SampleClocks, measured: Measurement) -> Measurement:
        kept.append(applied(clocks, measured))
        return kept[-1]

    monkeypatch.setattr(sample_clocks.SampleClocks, "applied", keeping)
    callables = {"fast": lambda: machine.kernel(20_000), "slow": lambda: machine.kernel(40_000)}
    found = compare(callables, stream=machine.stream, blocks=6, seconds=0.01, calls_per_sample=1)
    assert found.between("fast", "slow").verdict is Verdict.FASTER
    assert len(kept) == 12
    for each in kept:
        assert isinstance(each, StreamMeasurement)
        assert each.sm_mhz is not None
        assert set(each.sm_mhz) == {1755.0}
        assert (np.diff(np.asarray(each.started_ns)) > 0).all()
        assert each.settings["sm_clock"] == "1755 MHz"
