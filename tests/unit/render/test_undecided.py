"""A race without a verdict says what it could have detected, and what it would take: in text, rows, JSON and page."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from fairlap.meters import disturbances
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.race.run import Run
from fairlap.render.files.markdown_file import encode as as_markdown
from fairlap.render.report.answer import answer
from fairlap.render.text.terminal import text_of
from fairlap.request.names import Contestants
from fairlap.request.work import Work
from fairlap.results.results import Results, results_of
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.store.runs.run_file import run_document

WORK = Work("mlp", 4)
BLOCKS = 8


def shown(
    *, spread: float, apart: float, waited: float = 0.0, threads: int = 1, works: tuple[Work, ...] = (WORK,)
) -> Results:
    """Race two contestants for two seconds a block."""
    plan = draw_plan(
        Contestants("torch,jax"),
        works,
        blocks=BLOCKS,
        conditions="controlled",
        threads=threads,
        available_cores=tuple(range(threads)),
        seed=1,
    )
    noise, processes = random.Random(3), []
    for block in plan.blocks:
        for name, ns in (("torch", 1e6 * (1 + apart)), ("jax", 1e6)):
            own = ns * noise.lognormvariate(0, spread)
            figure = Timing(own, 2 * own, 3 * own, 100, 1, 0, "flat", "tsc", 10.0)
            work = plan.works[block.work].id
            made = ProcessResult(block.number, 0, name, work, "controlled", timings={"wall_ns": figure}, elapsed_s=1.0)
            made.machine, made.phases_s = {disturbances.WAITED: waited}, {"measured": 1.0}
            processes.append(made)
    return results_of(Run(plan, processes, {}, {}), "r")


def test_an_inconclusive_comparison_has_the_same_number_of_blocks_everywhere() -> None:
    found = shown(spread=0.15, apart=0.05)
    [needed] = [row.needed_blocks for row in found.rows if row.needed_blocks is not None]
    assert BLOCKS < needed < 500
    assert f"about {needed} blocks, {float(f'{2.0 * needed:.2g}'):g}" in text_of(found)
    [written] = run_document(found.run, found).work_results
    [comparison] = written.comparisons
    assert comparison.needed_blocks == needed
    assert f"about {needed} blocks" in as_markdown(found.rows).decode()
    assert f"about {needed} blocks" in str(answer(found, found.work_results[0]))


def test_a_clear_difference_needs_no_more_and_the_row_says_why() -> None:
    found = shown(spread=0.01, apart=0.5)
    assert [row.needed_blocks for row in found.rows] == [None, None]
    assert {row.absent["needed_blocks"] for row in found.rows} == {"it is the baseline", "the verdict is slower"}
    assert "explain inconclusive" not in text_of(found)


def test_what_a_busy_machine_hid_is_named_with_the_reason_for_no_verdict() -> None:
    found = shown(spread=0.15, apart=0.05, waited=0.9, threads=2)
    [work_result] = found.work_results
    assert work_result.basis.no_verdict_code == "E_BUSY_MACHINE"
    assert "% were not detectable" in work_result.why_no_verdict


CODED = re.compile(r"\[([EW]_[A-Z_]+)\]\.?$")


def codes_of_marked_lines(found: Results) -> set[str]:
    """Of all lines that warn, and of those that say why there is no verdict."""
    lines = [line.strip() for line in text_of(found).splitlines()]
    codes = [CODED.search(line) for line in lines if line.startswith(("! ", "No verdict"))]
    assert all(codes), text_of(found)
    return {code[1] for code in codes if code}


def of_some(found: Results, processes: Sequence[ProcessResult]) -> Results:
    return results_of(Run(found.run.plan, list(processes), {}, {}), "r")


def test_every_warning_and_every_missing_verdict_is_printed_with_its_code() -> None:
    quiet, busy = shown(spread=0.01, apart=0.5), shown(spread=0.01, apart=0.5, waited=0.2)
    assert codes_of_marked_lines(quiet) == set()
    assert codes_of_marked_lines(busy) == {"W_BUSY_MACHINE"}
    assert codes_of_marked_lines(shown(spread=0.1, apart=0.5, waited=0.9, threads=2)) >= {"E_BUSY_MACHINE"}
    processes = quiet.run.processes
    assert codes_of_marked_lines(of_some(quiet, processes[:6])) == {"W_TOO_FEW_BLOCKS"}
    one = of_some(quiet, processes[:2])
    assert codes_of_marked_lines(one) == {"W_TOO_FEW_BLOCKS"}
    assert one.work_results[0].basis.no_verdict_code == "W_TOO_FEW_BLOCKS"
    for each in processes:
        if each.contestant == "torch":
            each.outcome, each.code, each.message, each.timings = "crash", "E_CRASH", "ended by SIGSEGV", {}
    failed = of_some(quiet, processes)
    assert codes_of_marked_lines(failed) == {"W_ONE_RANKED"}
    assert failed.work_results[0].basis.no_verdict_code == "W_ONE_RANKED"


def test_in_a_table_of_works_the_code_of_a_missing_verdict_is_printed_once() -> None:
    works = tuple(Work("mlp", batch) for batch in (1, 2, 4, 8))
    found = shown(spread=0.1, apart=0.5, waited=0.9, threads=2, works=works)
    assert text_of(found).count("[E_BUSY_MACHINE]") == 1
