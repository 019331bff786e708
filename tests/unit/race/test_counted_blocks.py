"""Noisy blocks go as a whole and blindly; every figure with one value per process is compared; runs can be saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.machine.facts import machine_facts
from fairlap.meters import disturbances
from fairlap.race.counted_blocks import gate_blocks, inputs_at_fault, work_blocks
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.render.text.terminal import text_of
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.quantities.other_quantities import (
    CONTEXT_SPAN,
    DEVICE_SPAN,
    KERNEL_SUM,
    TIME_TO_FIRST_INFERENCE,
    QuantityComparisons,
    compare_other_quantities,
)
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import AnswerError, ProcessResult, Timing
from fairlap.store.runs.run_file import load_run, save_run
from fairlap.verdict import COMPILE_TIME, LATENCY, THROUGHPUT, TIME_TO_FIRST_GRADIENT, Verdict

WORK = Work("mlp", 4)
PLAN = draw_plan(
    Contestants("a,b"), (WORK,), blocks=8, conditions="controlled", threads=1, available_cores=(0,), seed=1
)


def process(block: int, name: str, ns: float, steal: float = 0.0, **phases: float) -> ProcessResult:
    jitter = 1 + 0.001 * ((block * 7 + len(name)) % 5)
    figure = Timing(ns * jitter, 2 * ns * jitter, 3 * ns * jitter, 100, 1, 0, "flat", "tsc", 10.0)
    made = ProcessResult(block, 0, name, WORK.id, "controlled", timings={"wall_ns": figure})
    made.machine = {disturbances.STEAL: steal, disturbances.RUN_QUEUE: 0.01}
    made.phases_s = {"import": 1.0, "first_call": 0.5, **phases}
    return made


def test_a_block_in_which_one_process_was_disturbed_goes_for_everyone() -> None:
    processes = [
        process(block, name, 1e6, 0.1 if (block, name) == (3, "b") else 0.0) for block in range(8) for name in "ab"
    ]
    found = gate_blocks(range(8), processes)
    assert found.kept == (0, 1, 2, 4, 5, 6, 7)
    assert found.dropped == (3,)
    assert (found.noisy, found.causes[disturbances.STEAL]) == (1, 1)


def test_who_ran_does_not_matter_to_the_gate() -> None:
    processes = [
        process(block, name, 1e6, 0.1 if (block, name) == (3, "b") else 0.0) for block in range(8) for name in "ab"
    ]
    swapped = [
        process(block, name, 1e6, 0.1 if (block, name) == (3, "a") else 0.0) for block in range(8) for name in "ab"
    ]
    assert gate_blocks(range(8), processes) == gate_blocks(range(8), swapped)


def test_no_more_than_the_noisiest_quarter_goes_and_it_is_said() -> None:
    steal = {0: 0.05, 1: 0.5, 2: 0.1}
    processes = [process(block, name, 1e6, steal.get(block, 0.0)) for block in range(8) for name in "ab"]
    found = gate_blocks(range(8), processes)
    assert found.dropped == (1, 2)
    assert found.kept == (0, 3, 4, 5, 6, 7)
    assert (found.noisy, found.causes[disturbances.STEAL]) == (3, 3)


def test_six_blocks_stay_six_since_five_could_claim_nothing() -> None:
    processes = [process(block, name, 1e6, 0.1 if block == 2 else 0.0) for block in range(6) for name in "ab"]
    found = gate_blocks(range(6), processes)
    assert found.kept == tuple(range(6))
    assert (found.noisy, found.dropped) == (1, ())


def test_eight_blocks_of_six_works_stay_eight_since_seven_could_claim_nothing() -> None:
    processes = [process(block, name, 1e6, 0.1 if block == 2 else 0.0) for block in range(8) for name in "abcd"]
    assert gate_blocks(range(8), processes, works=6).dropped == ()
    assert gate_blocks(range(8), processes, works=2).dropped == (2,)


def test_blocks_that_nothing_was_read_of_all_count() -> None:
    processes = [process(block, name, 1e6) for block in range(8) for name in "ab"]
    for one in processes:
        one.machine = {}
    assert gate_blocks(range(8), processes).kept == tuple(range(8))


def test_the_verdict_rests_on_the_blocks_that_are_left() -> None:
    processes = [process(n, who, ns, 0.1 if n == 3 else 0.0) for n in range(8) for who, ns in (("a", 1e6), ("b", 2e6))]
    shown = results_of(Run(PLAN, processes, {}, {}))
    assert [each.blocks for each in shown.work_results[0].comparisons] == [7]
    assert [row.blocks_dropped for row in shown.rows] == [1, 1]


def test_contestants_that_finished_no_block_together_get_no_verdict_and_the_reason() -> None:
    processes = [process(block, name, 1e6) for block in range(2) for name in "ab"]
    for failed in (processes[0], processes[3]):
        failed.outcome, failed.message, failed.timings = "failed", "it cannot be started", {}
    [found] = results_of(Run(PLAN, processes, {}, {})).work_results
    assert (found.blocks.kept, found.comparisons) == ((), ())
    assert found.why_no_verdict
    assert [row.outcome for row in found.rows] == ["failed", "failed"]


def test_every_figure_with_one_value_per_process_is_compared_in_its_own_sense() -> None:
    processes = {
        "a": [process(block, "a", 1e6, compile=0.2 + block / 1e4) for block in range(8)],
        "b": [process(block, "b", 2e6, **{"import": 3.0 + block / 1e3}) for block in range(8)],
    }
    found = {other.metric: other for other in compare_other_quantities(WORK, processes, LATENCY)}
    [faster] = found[THROUGHPUT].comparisons
    assert (faster.a, faster.verdict) == ("a", Verdict.FASTER)
    assert faster.ratio == pytest.approx(2.0, rel=0.01)
    [first] = found[TIME_TO_FIRST_INFERENCE].comparisons
    assert first.ratio == pytest.approx(1.7 / 3.5, rel=0.01)
    assert found[COMPILE_TIME].comparisons == ()
    assert found[COMPILE_TIME].without == ("b",)


def test_with_gradients_the_first_answer_is_the_first_gradient() -> None:
    processes = {name: [process(block, name, 1e6) for block in range(6)] for name in "ab"}
    names = [other.metric for other in compare_other_quantities(Work("mlp", 1, "grad"), processes, LATENCY)]
    assert TIME_TO_FIRST_GRADIENT in names
    assert TIME_TO_FIRST_INFERENCE not in names


def test_a_saved_run_comes_back_as_it_was(tmp_path: Path) -> None:
    run = Run(PLAN, [process(0, "a", 1e6), process(0, "b", 2e6)], {"cpu model": "one"}, {"whole": 1.0})
    file = tmp_path / "run.json"
    save_run(file, run)
    assert load_run(file) == run
    save_run(file, run, results_of(Run(PLAN, run.processes, {}, {})))
    assert load_run(file) == run


def test_the_file_holds_what_readers_expect_beside_the_verdict(tmp_path: Path) -> None:
    processes = [process(block, name, ns) for block in range(8) for name, ns in (("a", 1e6), ("b", 2e6))]
    file = tmp_path / "run.json"
    save_run(file, Run(PLAN, processes, {}, {}), results_of(Run(PLAN, processes, {}, {})))
    [work_result] = msgspec.json.decode(file.read_bytes())["work_results"]
    assert work_result["welch"][0]["p"] < 1e-6
    assert work_result["means"][0]["mean"] == pytest.approx(1e6, rel=0.01)
    assert work_result["comparisons"][0]["sentence"].startswith("a is 2.0")
    assert {other["metric"] for other in work_result["other_quantities"]} >= {
        "throughput",
        "latency p99",
        "compile time",
    }


@pytest.mark.parametrize("content", [b"{}", b"\xff", b"[1", None])
def test_what_is_not_a_run_file_is_refused_by_its_code(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "run.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidRequest) as refused:
        load_run(file)
    assert refused.value.code == "E_RUN_FILE"


def test_a_run_of_another_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    save_run(file, Run(PLAN, [], {}, {}, format=99))
    with pytest.raises(InvalidRequest, match="99"):
        load_run(file)


def test_a_run_file_whose_finished_process_has_no_times_is_refused(tmp_path: Path) -> None:
    processes = [process(block, name, 1e6) for block in range(8) for name in "ab"]
    processes[5].timings = {}
    save_run(tmp_path / "run.json", Run(PLAN, processes, {}, {}))
    with pytest.raises(InvalidRequest, match=r"b in block 2") as refused:
        load_run(tmp_path / "run.json")
    assert refused.value.code == "E_RUN_FILE"


def test_the_machine_says_what_it_is() -> None:
    facts = machine_facts()
    assert {"cores", "kernel", "architecture", "python"} <= set(facts)
    assert all(facts.values())


def on_device(block: int, name: str, ns: float, **others_ns: float) -> ProcessResult:
    """Make a process whose headline is wall time; the others are times on the device."""
    made = process(block, name, ns)
    for quantity, value_ns in others_ns.items():
        made.timings[quantity] = msgspec.structs.replace(made.headline, p50_ns=value_ns * (1 + 0.001 * block))
    return made


def test_contestants_measured_by_different_quantities_get_no_verdict_and_the_reason() -> None:
    processes = [process(block, name, 1e6) for block in range(8) for name in "ab"]
    for each in processes:
        if each.contestant == "b":
            each.timings = {"device_span_ns": each.timings["wall_ns"]}
    [found] = work_blocks(PLAN, processes, "controlled")
    assert found.table is None
    assert "E_UNLIKE_QUANTITIES" in found.why_no_verdict
    results = results_of(Run(PLAN, processes, {}, {}))
    assert [result.comparisons for result in results.work_results] == [()]
    assert all(row.verdict is None and "E_UNLIKE_QUANTITIES" in row.absent["verdict"] for row in results.rows[1:])


def test_a_contestant_whose_own_processes_differ_in_quantity_gets_no_verdict() -> None:
    processes = [process(block, name, 1e6) for block in range(8) for name in "ab"]
    processes[0].timings = {"device_span_ns": processes[0].timings["wall_ns"]}
    [found] = work_blocks(PLAN, processes, "controlled")
    assert found.table is None
    assert "E_UNLIKE_QUANTITIES" in found.why_no_verdict


def test_quantities_of_a_device_are_compared_where_every_contestant_has_them() -> None:
    compared = {
        "a": [on_device(block, "a", 2e6, device_span_ns=5e5, kernel_sum_ns=4e5) for block in range(8)],
        "b": [on_device(block, "b", 1e6, device_span_ns=1e6) for block in range(8)],
    }
    found = {each.metric: each for each in compare_other_quantities(WORK, compared, LATENCY)}
    [span] = found[DEVICE_SPAN].comparisons
    assert (span.a, span.b, span.verdict) == ("a", "b", Verdict.FASTER)  # on the device, though not for users
    assert span.ratio == pytest.approx(0.5, rel=0.01)
    assert found[KERNEL_SUM].comparisons == ()
    assert found[KERNEL_SUM].without == ("b",)
    assert CONTEXT_SPAN not in found


def test_a_quantity_of_a_device_that_one_of_three_lacks_is_not_compared_between_the_others() -> None:
    compared = {
        name: [on_device(block, name, 1e6, **({} if name == "c" else {"device_span_ns": 1e5})) for block in range(8)]
        for name in "abc"
    }
    found = {each.metric: each for each in compare_other_quantities(WORK, compared, LATENCY)}
    assert found[DEVICE_SPAN].comparisons == ()
    assert found[DEVICE_SPAN].without == ("c",)


def held(made: ProcessResult, quantity: str, gate: str) -> ProcessResult:
    made.timings[quantity] = msgspec.structs.replace(made.timings[quantity], gate=gate)
    return made


def test_spans_behind_a_gate_are_not_compared_with_spans_that_contain_launch_gaps() -> None:
    """On an H100 one of three processes lost its gate: its kernel of 5.7 us read as 28.7 us."""

    def compared(gates_of_b: Sequence[str]) -> dict[str, list[ProcessResult]]:
        spans = {name: [on_device(block, name, 1e6, device_span_ns=5e5) for block in range(8)] for name in "ab"}
        for each in spans["a"]:
            held(each, "device_span_ns", "stream_wait")
        for each, gate in zip(spans["b"], gates_of_b, strict=True):
            held(each, "device_span_ns", gate)
        return spans

    def of_span(gates_of_b: Sequence[str]) -> QuantityComparisons:
        found = compare_other_quantities(WORK, compared(gates_of_b), LATENCY)
        return next(each for each in found if each.metric == DEVICE_SPAN)

    [span] = of_span(["none", *["stream_wait"] * 7]).comparisons
    assert span.blocks == 7
    unequal = of_span(["none"] * 7 + ["stream_wait"])
    assert (unequal.comparisons, unequal.without) == ((), ())
    assert "a behind stream_wait, b without a gate" in unequal.why_not


@pytest.mark.parametrize(
    ("mhz_of_b", "ns_of_b", "verdict", "disagree"),
    [
        (1755.0, 5e5 * 1980 / 1755, Verdict.INCONCLUSIVE, True),  # as many cycles, at a lower clock
        (1755.0, 9e5, Verdict.FASTER, False),
        (None, 5e5 * 1980 / 1755, Verdict.FASTER, False),  # not known
    ],
)
def test_a_span_that_is_longer_by_its_clock_alone_is_not_slower(
    mhz_of_b: float | None, ns_of_b: float, verdict: Verdict, disagree: bool
) -> None:
    compared = {
        name: [on_device(block, name, 1e6, device_span_ns=ns) for block in range(8)]
        for name, ns in (("a", 5e5), ("b", ns_of_b))
    }
    for name, mhz in (("a", 1980.0), ("b", mhz_of_b)):
        for each in compared[name]:
            each.timings["device_span_ns"] = msgspec.structs.replace(each.timings["device_span_ns"], sm_mhz=mhz)
    found = next(each for each in compare_other_quantities(WORK, compared, LATENCY) if each.metric == DEVICE_SPAN)
    [span] = found.comparisons
    assert span.verdict is verdict
    assert ("W_CLOCKS_DISAGREE" in {each.code for each in span.warnings}) is disagree


def test_a_race_by_spans_counts_only_blocks_in_which_all_were_held_alike() -> None:
    processes = [process(block, name, 1e6) for block in range(8) for name in "ab"]
    for each in processes:
        held(each, "wall_ns", "none" if (each.contestant, each.block) in (("b", 2), ("b", 5)) else "spin")
    [found] = work_blocks(PLAN, processes, "controlled")
    assert found.gated.kept == (0, 1, 3, 4, 6, 7)
    for each in processes:
        held(each, "wall_ns", "none" if each.contestant == "b" else "spin")
    [found] = work_blocks(PLAN, processes, "controlled")
    assert found.table is None
    assert "b without a gate" in found.why_no_verdict


def test_a_row_names_how_the_device_was_timed_or_why_it_was_not() -> None:
    processes = [on_device(block, name, 1e6, device_span_ns=5e5) for block in range(8) for name in "ab"]
    for each in processes:
        each.untimed = {"kernel_sum_ns": "libcupti was not found"}
    row = results_of(Run(PLAN, processes, {}, {})).rows[0]
    assert row.device_span_ns is not None
    assert row.device_method == "device_span: tsc"
    assert row.absent["kernel_sum_ns"] == "libcupti was not found"


def test_the_summary_of_a_race_on_a_gpu_shows_the_device_and_its_comparison_beside_the_headline() -> None:
    plan = msgspec.structs.replace(PLAN, device="cuda:0")
    processes = [
        on_device(block, name, ns, device_span_ns=span_ns)
        for block in range(8)
        for name, ns, span_ns in (("a", 2e6, 5e5), ("b", 1e6, 9e5))
    ]
    text = text_of(results_of(Run(plan, processes, {}, {})))
    assert "on cuda:0: device span" in text
    assert "By device span:" in text
    for each in processes:
        del each.timings["device_span_ns"]
        each.untimed = {"device_span_ns": "its stream was not found"}
    text = text_of(results_of(Run(plan, processes, {}, {})))
    assert "no device span: its stream was not found" in text
    assert "By device span" not in text
    for each in processes:
        each.timings, each.untimed = {}, {}
        each.outcome, each.message = "unsupported", "it is a build without CUDA"
    text = text_of(results_of(Run(plan, processes, {}, {})))
    assert text.count("it is a build without CUDA") == len("ab")  # once for each contestant, in its line


def _off(name: str, relative: float | None, code: str = "E_OUTPUT") -> ProcessResult:
    made = process(0, name, 1e6)
    made.outcome, made.code = "disqualified", code
    made.errors = [AnswerError("out", "before", 0.9, relative, relative, right=False)]
    return made


OWN = Work("m.onnx", 4, source=Source("m.onnx", "/m.onnx"))


@pytest.mark.parametrize(
    ("errors", "at_fault"),
    [((1e-3, 2e-3), True), ((1e-3, 2e-1), False), ((1e-3, None), False), ((1e-3,), False)],
)
def test_where_all_contestants_are_off_alike_the_inputs_are_at_fault(
    errors: tuple[float | None, ...], at_fault: bool
) -> None:
    found = {name: [_off(name, error)] for name, error in zip("ab", errors, strict=False)}
    assert bool(inputs_at_fault(OWN, found)) is at_fault
    assert not inputs_at_fault(WORK, found)


def test_the_code_of_inputs_at_fault_stands_where_there_is_no_verdict() -> None:
    plan = msgspec.structs.replace(PLAN, works=(OWN,))
    off = [_off(name, 1e-3) for name in "ab"]
    for each in off:
        each.work_id = OWN.id
    [found] = results_of(Run(plan, off, {}, {})).work_results
    assert found.basis.no_verdict_code == "E_INPUTS_AT_FAULT"
    off[1].outcome, off[1].code, off[1].errors = "finished", "", []
    [found] = results_of(Run(plan, off, {}, {})).work_results
    assert (found.basis.no_verdict_code, found.basis.is_refused) == ("W_ONE_RANKED", False)
    assert "W_ONE_RANKED" in found.why_no_verdict


@pytest.mark.parametrize(("measured_s", "modes"), [(0.4, 0), (1.3, 0), (1.5, 2)])
def test_groups_of_processes_measured_in_one_turn_are_modes_if_no_episode_is_most_of_it(
    measured_s: float, modes: int
) -> None:
    processes = [
        process(block, name, 1e6 * (2 if name == "a" and block % 2 else 1), measured=measured_s)
        for block in range(8)
        for name in "ab"
    ]
    rows = {row.contestant: row for row in results_of(Run(PLAN, processes, {}, {})).rows}
    assert (len(rows["a"].modes), len(rows["b"].modes)) == (modes, 0)


def test_a_contestant_that_is_right_or_wrong_otherwise_clears_the_inputs() -> None:
    assert not inputs_at_fault(OWN, {"a": [_off("a", 1e-3)], "b": [process(0, "b", 1e6)]})
    assert not inputs_at_fault(OWN, {"a": [_off("a", 1e-3)], "b": [_off("b", 1e-3, "E_STALE_ANSWER")]})
