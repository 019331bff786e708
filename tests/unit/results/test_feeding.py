"""What a row tells of feeding, the terminal tells too, and its shares of the time are those of one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from fairlap.data.timed_copies import TimedCopies
from fairlap.race.run import Run
from fairlap.render.files import csv_file, markdown_file
from fairlap.render.text.terminal import text_of
from fairlap.results.prices import price_given
from fairlap.results.results import results_of
from fairlap.results.row import Row, judged_time_ns
from fairlap.scenarios.calls.latency_messages import Feeding
from runs_for_rows import a_run

CAUSES = {"source_ns": 0.25, "staging_ns": 0.75, "no_slot_ns": 0.0}


def fed_run(fed: Sequence[tuple[float, float]], *, causes: bool = True) -> Run:
    """One contestant, fed so many items a second and waiting so large a share of it in each of its processes."""
    run = a_run(blocks=len(fed), listed="torch")
    run.plan = msgspec.structs.replace(run.plan, data="synthetic")
    for process, (items, share) in zip(run.processes, fed, strict=True):
        wall_ns = 1e13  # long, so that the counts are whole numbers
        waits_ns: dict[str, Any] = {name: part * share * wall_ns for name, part in CAUSES.items()} if causes else {}
        process.feeding = Feeding(
            items=round(items * 10_000),
            calls=round(items * 2_500),
            wall_ns=wall_ns,
            work_ns=(1 - share) * wall_ns,
            waited_ns=share * wall_ns,
            **waits_ns,
        )
        process.in_force = {**process.in_force, "feed": "fairlap"}
    return run


def row_of(run: Run) -> Row:
    [row] = results_of(run, "r").rows
    return row


def line_of(run: Run) -> str:
    return next(line.strip() for line in text_of(results_of(run)).splitlines() if line.strip().startswith("fed by"))


AROUND = "`cpu`, 1 thread, controlled, 2 blocks"
TWO_FAR_APART = [(33276.0, 0.052), (670.0, 0.792)]


def test_two_processes_far_apart_have_the_same_figures_in_the_terminal_and_in_the_row() -> None:
    run = fed_run(TWO_FAR_APART)
    row = row_of(run)
    assert row.pipeline_throughput_per_s is not None
    assert f"{row.pipeline_throughput_per_s.value:,.0f}" == "4,722"
    assert line_of(run) == (
        "fed by fairlap: 4,722 items/s, waited 79 % of the time (reading 20 %, copying 59 %, no free slot 0 %)"
    )
    assert row.waited_share is not None
    assert row.waited_share.value == pytest.approx(0.792)
    assert "0.792" in csv_file.encode([row]).decode()


def test_markdown_says_that_a_race_was_fed_how_fast_and_how_long_it_waited() -> None:
    fed, unfed = row_of(fed_run(TWO_FAR_APART)), row_of(a_run(blocks=2, listed="torch"))
    parts = [part.strip() for part in markdown_file.encode([fed, unfed]).decode().split("\n\n")]
    own, other = (parts.index(f"**`mlp` infer fp32 batch 4{what}**, {AROUND}") for what in (" fed `synthetic`", ""))
    head, _, figures = parts[own + 1].splitlines()
    cells = dict(zip(head.split(" | "), figures.split(" | "), strict=True))
    assert (cells["items/s"], cells["waited"]) == ("4,722", "79 %")
    assert "waited" not in parts[other + 1]
    assert len(parts[other + 1].splitlines()) == 3


def test_a_verdict_in_markdown_says_what_was_fed() -> None:
    run = a_run()
    run.plan = msgspec.structs.replace(run.plan, data="/data/a|b.npy")
    text = markdown_file.encode(results_of(run, "r").rows).decode()
    assert (
        "times as long as `jax:fast` on `mlp` infer fp32 batch 4 fed <code>&#47;data&#47;a&#124;b&#46;npy</code>, "
        in text
    )


@pytest.mark.parametrize("causes", [True, False])
@pytest.mark.parametrize(
    "fed",
    [
        TWO_FAR_APART,
        [(100.0, 0.5), (100.0, 0.0), (300.0, 0.1)],
        [(100.0, share / 100) for share in (9, 1, 4, 70, 0, 5)],
    ],
)
def test_shares_of_the_time_add_up_with_what_was_waited(fed: list[tuple[float, float]], causes: bool) -> None:
    row = row_of(fed_run(fed, causes=causes))
    assert row.waited_share is not None
    assert row.stall_shares["work"] + row.waited_share.value == pytest.approx(1)
    assert sum(row.stall_shares.values()) == pytest.approx(1)


def test_a_process_that_never_waited_takes_the_interval_from_nobody() -> None:
    shares = [0.0, 0.03, 0.05, 0.01, 0.02, 0.04, 0.06, 0.07]
    row = row_of(fed_run([(100.0 + number, share) for number, share in enumerate(shares)]))
    assert row.waited_share is not None
    assert row.waited_share.value == 0.04
    assert (row.waited_share.low, row.waited_share.high) == (0.0, 0.07)


def test_few_processes_carry_no_interval_of_the_share_that_was_waited() -> None:
    row = row_of(fed_run([(100.0, 0.1), (100.0, 0.0), (100.0, 0.2)]))
    assert row.waited_share is not None
    assert (row.waited_share.value, row.waited_share.low, row.waited_share.high) == (0.1, None, None)


def test_a_slow_pipeline_is_not_reported_as_no_items_at_all() -> None:
    assert "fed by fairlap: 0.25 items/s" in line_of(fed_run([(0.25, 0.9)]))


def test_who_feeds_in_bursts_is_judged_by_the_whole_time_and_not_by_calls_that_did_not_wait() -> None:
    """Judge a contestant that is fed in bursts by the whole time.

    The first takes 2 ms for a call that does not wait, and 8 ms a batch over the whole time; the second takes 4 ms each
    time. Every figure of speed and the verdict agree that the second is the faster one.
    """
    run = a_run(blocks=8, listed="torch,jax")
    run.plan = msgspec.structs.replace(run.plan, data="synthetic")
    whole_ns = {"torch": 8e6, "jax": 4e6}
    for process in run.processes:
        noise = process.timings["wall_ns"].p50_ns / (2e6 if process.contestant == "torch" else 1e6)
        wall_ns = 100 * whole_ns[process.contestant] * noise
        process.feeding = Feeding(400, 100, wall_ns=wall_ns, work_ns=wall_ns / 4, waited_ns=0.75 * wall_ns)
    [work_result] = results_of(run).work_results
    assert work_result.standing is not None
    assert work_result.standing.winner == "jax"
    jax, torch = results_of(run, "r", price=price_given("1/h")).rows
    for row, whole in ((jax, 4e6), (torch, 8e6)):
        assert row.throughput_per_s == row.pipeline_throughput_per_s
        judged, cost = judged_time_ns(row), row.cost_per_1000_items
        assert judged is not None
        assert judged.value == pytest.approx(whole, rel=0.01)
        assert judged.low is not None
        assert judged.high is not None
        assert judged.low < judged.value < judged.high
        assert cost is not None
        assert cost.value == pytest.approx(1000 / 4 * judged.value / 3.6e12)
        assert row.latency_p50_ns is not None
        assert row.latency_p50_ns.value == pytest.approx(whole / 4, rel=0.01)
    assert torch.ratio is not None
    assert torch.ratio.value == pytest.approx(2, rel=0.01)
    text = text_of(results_of(run))
    slower = next(line for line in text.splitlines() if line.split()[:2] == ["2", "torch"])
    assert "8.0" in slower
    assert "2.00" in slower


def copies_run(shares: Sequence[float | None], absent: str = "") -> Run:
    """As before, with this share of the copies to a GPU hidden in each process; None where none were timed."""
    run = fed_run([(100.0, 0.1)] * len(shares))
    for process, share in zip(run.processes, shares, strict=True):
        copies = TimedCopies(absent=absent) if share is None else TimedCopies(100, 1e6, share * 1e6)
        assert process.feeding is not None
        process.feeding = msgspec.structs.replace(process.feeding, copies=copies)
    return run


def test_the_row_has_the_share_of_the_copies_that_was_hidden_with_its_interval() -> None:
    row = row_of(copies_run([0.5, 0.52, 0.48, 0.55, 0.51, 0.49, 0.0, 1.0]))
    assert row.copies_hidden_share is not None
    assert row.copies_hidden_share.value == pytest.approx(0.51)
    assert (row.copies_hidden_share.low, row.copies_hidden_share.high) == (0.0, 1.0)
    assert line_of(copies_run([0.5, 0.5])).endswith(", 50 % of copying hidden behind work")


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (copies_run([None, None], "batches stay in host memory"), "batches stay in host memory"),
        (copies_run([0.5, None], "too few batches were copied"), "too few batches were copied"),
        (fed_run(TWO_FAR_APART), "copies were not timed"),
        (a_run(blocks=2, listed="torch"), "nothing was fed; see --data"),
    ],
    ids=["on a CPU", "in one process", "by another worker", "not fed"],
)
def test_without_copies_the_share_is_absent_with_the_reason(run: Run, reason: str) -> None:
    row = row_of(run)
    assert row.copies_hidden_share is None
    assert row.absent["copies_hidden_share"] == reason
