"""A row says what bounds its call, by the longest of three least times, and with the figures that show it."""

from __future__ import annotations

import msgspec
import pytest
from fairlap.machine.hardware.roofs import Roof
from fairlap.models.call_cost import CallCost
from fairlap.race.run import Run
from fairlap.render.text.terminal import text_of
from fairlap.request.work import Precision
from fairlap.results.results import results_of
from fairlap.results.row import Row
from runs_under_roofs import BANDWIDTHS, OVERHEAD_NS, PEAK, a_run_under_roofs, without_operations

# torch takes 2 ms
PRODUCT = CallCost(moved_bytes=3e6, working_set_bytes=4e6, operators=1, operations=1e8)
TRIAD = CallCost(moved_bytes=12e6, working_set_bytes=600e6, operators=1, operations=2e6)
LOOKUP = CallCost(moved_bytes=12e6, working_set_bytes=600e6, operators=1, operations=0.0)
EMPTY = CallCost(moved_bytes=64, working_set_bytes=96, operators=1, operations=8)


def torch_row(run: Run) -> Row:
    return next(row for row in results_of(run, "r").rows if row.contestant == "torch")


def at(run: Run, call_ns: float) -> Run:
    for process in run.processes:
        process.timings = {
            name: msgspec.structs.replace(each, p50_ns=call_ns, p90_ns=call_ns, p99_ns=call_ns)
            for name, each in process.timings.items()
        }
    return run


def test_a_product_is_compute_bound_and_its_share_is_that_of_the_peak() -> None:
    row = torch_row(a_run_under_roofs(PRODUCT))
    assert (row.bound, row.roof) == ("compute-bound", "fp32")
    assert row.gflop_per_s is not None
    assert row.gflop_per_s.value == pytest.approx(1e8 / 2e6, rel=0.01)
    assert row.roof_share == pytest.approx(1e9 * row.gflop_per_s.value / PEAK)
    assert row.operations_per_byte == pytest.approx(1e8 / 3e6)
    assert (row.operations_per_call, row.bytes_per_call) == (1e8, 3e6)
    assert row.overhead_ns == OVERHEAD_NS
    assert row.roof_instructions == "AVX2"


def test_a_small_share_of_a_roof_is_printed_without_the_claim_that_it_binds() -> None:
    run = at(a_run_under_roofs(PRODUCT), 6e6)
    row = torch_row(run)
    assert row.roof_share is not None
    assert 0.1 < row.roof_share < 0.25
    text = text_of(results_of(run, "r"))
    assert "compute-bound" not in text
    assert f"{100 * row.roof_share:.2g} % of the fp32 roof (AVX2)" in text
    assert "compute-bound: " in text_of(results_of(a_run_under_roofs(PRODUCT), "r"))


def test_a_triad_beyond_the_caches_is_memory_bound_and_its_share_is_that_of_memory() -> None:
    row = torch_row(a_run_under_roofs(TRIAD))
    assert (row.bound, row.roof) == ("memory-bound", "memory")
    assert row.roof_instructions is None
    assert row.absent["roof_instructions"]
    assert row.roof_share == pytest.approx(12e6 / 2e-3 / BANDWIDTHS["memory"], rel=0.01)


@pytest.mark.parametrize(("working_set_bytes", "level"), [(1e4, "L1"), (5e5, "L2"), (5e6, "L3"), (5e8, "memory")])
def test_the_bandwidth_is_that_of_the_smallest_level_that_holds_the_working_set(
    working_set_bytes: float, level: str
) -> None:
    cost = msgspec.structs.replace(TRIAD, working_set_bytes=working_set_bytes)
    assert torch_row(a_run_under_roofs(cost)).roof == level


def test_a_call_that_is_quicker_than_memory_allows_had_its_bytes_in_a_cache() -> None:
    run = at(a_run_under_roofs(TRIAD), 12e6 / BANDWIDTHS["L3"] * 1e9 * 1.5)
    row = torch_row(run)
    assert row.roof == "L3"
    assert row.roof_share == pytest.approx(1 / 1.5)


def test_a_call_with_next_to_nothing_to_compute_is_overhead_bound() -> None:
    row = torch_row(at(a_run_under_roofs(EMPTY), 5.2e3))
    assert row.bound == "overhead-bound"
    assert row.roof_share is not None
    assert row.roof_share < 1e-3


@pytest.mark.parametrize("slower", [1, 1.8, 4, 100])
@pytest.mark.parametrize(
    ("cost", "bound"), [(PRODUCT, "compute-bound"), (TRIAD, "memory-bound"), (EMPTY, "overhead-bound")]
)
def test_a_machine_that_is_slow_for_a_while_changes_no_bound_but_may_leave_it_open(
    cost: CallCost, bound: str, slower: float
) -> None:
    usual_ns = {"compute-bound": 2e6, "memory-bound": 2e6, "overhead-bound": 5.2e3}[bound]
    row = torch_row(at(a_run_under_roofs(cost), slower * usual_ns))
    assert row.bound == (bound if slower < (2 if cost is EMPTY else 5) else None)


@pytest.mark.parametrize("overhead_ns", [OVERHEAD_NS / 1.5, 1.5 * OVERHEAD_NS])
@pytest.mark.parametrize(
    ("cost", "bound"), [(PRODUCT, "compute-bound"), (TRIAD, "memory-bound"), (EMPTY, "overhead-bound")]
)
def test_an_overhead_that_is_off_by_half_changes_no_bound(cost: CallCost, bound: str, overhead_ns: float) -> None:
    call_ns = 5.2e3 if cost is EMPTY else 2e6
    assert torch_row(at(a_run_under_roofs(cost, overhead_ns), call_ns)).bound == bound


def test_a_call_is_overhead_bound_only_where_an_empty_one_takes_half_of_its_time() -> None:
    cost = CallCost(moved_bytes=1e3, working_set_bytes=2e3, operators=100, operations=1e4)  # 0.1 us
    run = a_run_under_roofs(cost)
    assert torch_row(at(run, 1.9 * OVERHEAD_NS)).bound == "overhead-bound"
    assert torch_row(at(run, 2.1 * OVERHEAD_NS)).bound is None


def test_an_empty_call_that_took_longer_than_the_call_says_nothing() -> None:
    """Beside other races on one H100 an empty call took 337 us, and a product 91."""
    run = a_run_under_roofs(EMPTY)
    assert torch_row(at(run, OVERHEAD_NS / 1.4)).bound == "overhead-bound"
    row = torch_row(at(run, OVERHEAD_NS / 1.6))
    assert row.bound is None
    assert "another load" in row.absent["bound"]


def test_where_neither_the_roofs_nor_an_empty_call_explain_the_time_the_row_gives_both_shares() -> None:
    cost = CallCost(moved_bytes=1e3, working_set_bytes=2e3, operators=100, operations=1e4)
    run = at(a_run_under_roofs(cost), 5e5)
    row = torch_row(run)
    assert row.bound is None
    assert row.roof_share == pytest.approx(0.1e3 / 5e5)
    for text in (row.absent["bound"], text_of(results_of(run, "r"))):
        assert "0.02 % of its time" in text
        assert "1 % of it" in text


def test_between_a_roof_and_a_longer_empty_call_that_is_not_half_of_the_time_the_bound_is_open() -> None:
    cost = CallCost(moved_bytes=1e3, working_set_bytes=2e3, operators=1, operations=3e5)  # 3 us
    assert torch_row(at(a_run_under_roofs(cost), 1.5e4)).bound is None  # an empty call takes 5 us
    assert torch_row(at(a_run_under_roofs(cost, 2.5e3), 1.5e4)).bound == "compute-bound"


def test_without_an_overhead_only_a_call_that_the_roofs_explain_is_called_bound() -> None:
    assert torch_row(a_run_under_roofs(PRODUCT, None)).bound == "compute-bound"
    row = torch_row(at(a_run_under_roofs(EMPTY, None), 5e3))
    assert row.bound is None
    assert row.absent["bound"].endswith("it refused")
    assert row.absent["overhead_ns"] == "it refused"


def test_bfloat16_has_its_own_peak_and_a_type_without_instructions_that_of_float32() -> None:
    run = a_run_under_roofs(PRODUCT)
    [work] = run.plan.works
    run.plan = msgspec.structs.replace(run.plan, works=(msgspec.structs.replace(work, precision="bf16"),))
    for process in run.processes:
        process.work_id = run.plan.works[0].id
    row = torch_row(run)
    assert row.roof == "bf16"
    assert row.roof_share is not None
    assert row.roof_share < torch_row(a_run_under_roofs(PRODUCT)).roof_share  # type: ignore[operator]
    assert run.roofs is not None
    peaks: dict[str, Roof] = {"fp32": run.roofs.operations_per_s["fp32"]}
    run.roofs = msgspec.structs.replace(run.roofs, operations_per_s=peaks)
    assert torch_row(run).roof == "fp32"


def test_where_nothing_is_known_the_row_says_why() -> None:
    run = a_run_under_roofs(PRODUCT)
    run.roofs = None
    row = torch_row(run)
    assert row.gflop_per_s is not None
    assert {row.bound, row.roof, row.roof_share, row.bound_evidence} == {None}
    uncounted = torch_row(a_run_under_roofs(without_operations(PRODUCT)))
    assert uncounted.bytes_per_call == 3e6
    assert uncounted.absent["bound"] == uncounted.absent["gflop_per_s"] == "they are not counted"
    for process in run.processes:
        process.call_cost = None
    unknown = torch_row(run)
    assert unknown.operations_per_call is None
    assert unknown.bytes_per_call is None


def on_a_gpu(run: Run, precision: Precision = "fp32") -> Run:
    """Under the roofs of a GPU that has none for int8."""
    assert run.roofs is not None
    [work] = run.plan.works
    works = (msgspec.structs.replace(work, precision=precision),)
    run.plan = msgspec.structs.replace(run.plan, device="cuda:0", works=works)
    for process in run.processes:
        process.work_id = works[0].id
    run.roofs = msgspec.structs.replace(
        run.roofs,
        threads=None,
        device="cuda:0",
        bytes_per_s={level: run.roofs.bytes_per_s[level] for level in ("L2", "memory")},
        cache_bytes={"L2": 50 * 2**20},
        absent={"int8": "its units are not measured"},
    )
    return run


def test_a_race_on_a_gpu_has_the_roofs_of_the_gpu() -> None:
    product = torch_row(on_a_gpu(a_run_under_roofs(PRODUCT)))
    assert (product.bound, product.roof) == ("compute-bound", "fp32")
    small = msgspec.structs.replace(TRIAD, working_set_bytes=5e6)
    assert torch_row(on_a_gpu(a_run_under_roofs(small))).roof == "L2"
    assert torch_row(on_a_gpu(a_run_under_roofs(TRIAD))).roof == "memory"
    assert torch_row(at(on_a_gpu(a_run_under_roofs(EMPTY)), 5.2e3)).bound == "overhead-bound"


def test_a_type_without_a_roof_of_its_own_is_not_compared_with_another_of_a_gpu() -> None:
    row = torch_row(on_a_gpu(a_run_under_roofs(PRODUCT), "int8"))
    assert row.gflop_per_s is not None
    assert {row.bound, row.roof, row.roof_share, row.bound_evidence} == {None}
    assert "its units are not measured" in row.absent["bound"]
    assert torch_row(on_a_gpu(a_run_under_roofs(PRODUCT), "bf16")).roof == "bf16"


def test_a_run_on_a_gpu_of_before_its_roofs_were_measured_has_amounts_alone() -> None:
    run = on_a_gpu(a_run_under_roofs(PRODUCT, None))
    run.roofs = None
    row = torch_row(run)
    assert row.gflop_per_s is not None
    assert row.roof is None
    assert row.absent["bound"]


def test_the_answer_on_the_terminal_names_the_bound_of_each_row_that_has_one() -> None:
    found = results_of(a_run_under_roofs(TRIAD), "r")
    lines = text_of(found).splitlines()
    assert [line.strip().partition(":")[0] for line in lines if "-bound" in line] == ["memory-bound"] * 2
    run = a_run_under_roofs(TRIAD)
    run.roofs = None
    assert "-bound" not in text_of(results_of(run, "r"))


def test_a_call_without_arithmetic_is_bound_by_memory_or_by_the_overhead() -> None:
    row = torch_row(a_run_under_roofs(LOOKUP))
    assert (row.bound, row.roof, row.operations_per_call, row.operations_per_byte) == ("memory-bound", "memory", 0, 0)
    assert row.gflop_per_s is not None
    assert row.gflop_per_s.value == 0
    assert row.roof_share == pytest.approx(12e6 / 2e-3 / BANDWIDTHS["memory"], rel=0.01)
    few = msgspec.structs.replace(LOOKUP, moved_bytes=64.0, working_set_bytes=96.0)
    assert torch_row(at(a_run_under_roofs(few), 5.2e3)).bound == "overhead-bound"


def test_far_below_the_roofs_the_evidence_says_so_and_no_bound_is_claimed() -> None:
    run = at(a_run_under_roofs(PRODUCT), 50e6)
    row = torch_row(run)
    assert row.bound is None
    assert row.roof_share == pytest.approx(0.02)
    assert "far below" in str(row.bound_evidence)
    assert "compute-bound" not in text_of(results_of(run, "r"))
    assert "far below" not in str(torch_row(a_run_under_roofs(PRODUCT)).bound_evidence)
