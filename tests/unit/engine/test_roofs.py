"""Trials of the native kernels: what they return, not how fast this machine is."""

from __future__ import annotations

import threading

import pytest
from fairlap.engine.roofs import Team, Trials, arithmetic_trials, instructions_for, triad_trials
from fairlap.errors import NotAvailable


@pytest.fixture(scope="module", params=["fp32", "fp16", "bf16", "int8", "triad"])
def taken(request: pytest.FixtureRequest) -> Trials:
    if request.param == "triad":
        trials = triad_trials(24 * 1024, Team(1), in_caches=True)
    elif instructions_for(request.param):
        trials = arithmetic_trials(request.param, Team(1))
    else:
        pytest.skip(f"this processor has no instructions for {request.param}")
    for _ in range(3):
        trials.take(0.05)
    return trials


def test_a_roof_is_one_of_the_rates_between_its_bounds(taken: Trials) -> None:
    roof = taken.roof()
    assert roof.value in taken.rates
    assert 0 < roof.low <= roof.value <= roof.high <= max(taken.rates)


def test_at_most_a_twentieth_of_the_trials_exceed_the_roof(taken: Trials) -> None:
    assert sum(rate > taken.roof().value for rate in taken.rates) <= len(taken.rates) / 20


def test_the_instructions_that_were_used_are_named(taken: Trials) -> None:
    assert taken.instructions


def test_every_processor_has_fp32_and_fp64_and_none_has_other_names() -> None:
    assert instructions_for("fp32")
    assert instructions_for("fp64")
    with pytest.raises(NotAvailable) as found:
        arithmetic_trials("fp7", Team(1))
    assert found.value.code == "E_NOT_AVAILABLE"


def test_only_in_memory_the_stores_may_bypass_the_caches() -> None:
    for _ in range(3):
        assert "non-temporal" not in triad_trials(512 * 1024, Team(1), in_caches=True).instructions


def test_other_python_threads_run_during_the_trials() -> None:
    trials = arithmetic_trials("fp32", Team(1))
    ran, ended = threading.Event(), threading.Event()

    def wait_then_run() -> None:
        ended.wait(0.02)  # the trials have begun by then
        if not ended.is_set():
            ran.set()

    thread = threading.Thread(target=wait_then_run)
    thread.start()
    trials.take(1.0)
    ended.set()
    thread.join()
    assert ran.is_set()


@pytest.mark.skipif(
    "avx512_vnni" not in instructions_for("int8") or "avx512f" not in instructions_for("fp32"),
    reason="needs a processor with AVX-512 VNNI",
)
def test_dot_products_of_bytes_reach_the_ports_of_multiply_adds() -> None:
    """Both begin as often in a cycle, and four times as many bytes as floats are in a vector.

    A compiler that copies each sum halves that. The best trial counts, since other programs only slow trials down.
    """
    trials = {name: arithmetic_trials(name, Team(1)) for name in ("int8", "fp32")}
    for _ in range(6):
        for each in trials.values():
            each.take(0.02)
    if trials["int8"].instructions == "avx512_vnni":  # tiles are faster by more
        assert max(trials["int8"].rates) > 3 * max(trials["fp32"].rates)
