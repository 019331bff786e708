"""``fairlap gate``: an exit status for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON, REQUIRED_CHANGES
from fairlap.cli.options.values import LARGEST_SLOWDOWN, RUN_OR_FILE
from fairlap.cli.output import print_error, print_result

if TYPE_CHECKING:
    from fairlap.history.gate import Finding
    from fairlap.request.gate_file import GateRules

_NOT_COMPARABLE = 3


class GateCommand(Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.exit_code = _NOT_COMPARABLE  # type: ignore[misc]  # of this error alone; 2 would mean inconclusive
            raise


@click.command(
    "gate",
    cls=GateCommand,
    examples="""
fairlap gate last --baseline onnxruntime==1.24.4 --max-slowdown 3%
    Fail when another contestant is shown to be slower by more than 3 %.
fairlap gate before.json after.json
    Compare two runs.
fairlap gate last --baseline old --require 'memory_peak<=+2%' --require 'compile_time<=+10%'
    Fail also when peak memory or compile time is shown to have grown by more.
""",
)
@click.argument("before", type=RUN_OR_FILE, metavar="RUN|BEFORE")
@click.argument("after", required=False, type=RUN_OR_FILE, metavar="[AFTER]")
@click.option("--baseline", help="Baseline contestant, within one run.")
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    help="Contestant to judge, within one run. Repeatable.  [default: all]",
)
@click.option(
    "--max-slowdown",
    "--margin",
    "max_slowdown",
    type=LARGEST_SLOWDOWN,
    help="Largest acceptable slowdown.  [default: 2%]",
)
@REQUIRED_CHANGES
@OUTPUT_JSON
@JSON
@click.option("--strict", is_flag=True, help="Fail with status 2 when inconclusive.")
def command(
    before: str,
    after: str | None,
    baseline: str | None,
    candidates: tuple[str, ...],
    max_slowdown: float | None,
    require: tuple[str, ...],
    output: tuple[Path, ...],
    as_json: bool,
    strict: bool,
) -> None:
    """Fail when a run shows a slowdown of more than --max-slowdown, or a quantity beyond what --require allows.

    The interval that `fairlap show` and `fairlap diff` print decides: above the bound fails, below it passes, and with
    the bound inside it is inconclusive.

    With one run, its contestants are compared: the strongest evidence, because they took turns. With two runs, the
    same contestants of both are compared. Runs are ids of stored runs, or run files; with two, also results of
    pytest-benchmark or asv.

    All required quantities share one 5 % error rate, besides that of the time. `gate.toml` in the current folder may
    hold max_slowdown, strict and require; options replace them.

    Exit status: 0 when every contestant is within the bounds, or inconclusive, 1 when a larger slowdown or change is
    shown, 2 when inconclusive with --strict, 3 when not comparable.
    """
    from fairlap.errors import FairlapError
    from fairlap.history.gate import GateDocument, overall
    from fairlap.request.gate_file import gate_rules

    try:
        rules = gate_rules(max_slowdown, strict=strict, require=require)
        findings, trades = _judged(before, after, baseline, candidates, rules)
    except FairlapError as error:
        print_error(str(error), error.code, as_json=as_json)
        raise SystemExit(_NOT_COMPARABLE) from None
    status = overall(findings, strict=rules.strict)
    shown = [each.printed for each in findings]
    document = GateDocument(int(status), rules.max_slowdown, shown, tuple(trades))
    lines = [*map(str, findings), *(f"trade: {each}" for each in trades)]
    text = "\n".join(lines) or "not comparable: the two runs have nothing in common"
    print_result(document, text, as_json=as_json, output=output)
    raise SystemExit(int(status))


def _judged(
    before: str, after: str | None, baseline: str | None, candidates: tuple[str, ...], rules: GateRules
) -> tuple[list[Finding], list[str]]:
    """Find what decides, and what the faster one costs."""
    from fairlap.errors import InvalidRequest
    from fairlap.history.between_runs import compare_saved_runs, is_same_run
    from fairlap.history.gate import findings_between, require_known, required_between
    from fairlap.history.other_tools import benchmarks_of, findings_between_benchmarks, read_benchmarks
    from fairlap.history.trades_between_runs import trades_between
    from fairlap.results.results import results_of
    from fairlap.store.runs.run_sources import run_named

    require_known(rules.required)
    if after is None:
        if read_benchmarks(Path(before)) is not None:
            raise InvalidRequest("results of another tool are compared with a second file; give that too")
        run = run_named(before)[0]
        if not baseline:
            raise InvalidRequest("give a second run, or --baseline to compare contestants of one run")
        results = results_of(run, required=rules.required or None)
        findings = results.findings_against(baseline, candidates, max_slowdown=rules.max_slowdown)
        return findings, results.trades_against(baseline, candidates)
    if baseline or candidates:
        raise InvalidRequest("--baseline and --candidate apply to one run; leave them or the second run out")
    others = read_benchmarks(Path(before)), read_benchmarks(Path(after))
    if any(others):
        old, new = (
            each or benchmarks_of(run_named(name)[0]) for each, name in zip(others, (before, after), strict=True)
        )
        if rules.required:
            raise InvalidRequest(f"{rules.required[0].text}: results of another tool have times only; leave it out")
        return findings_between_benchmarks(old, new, max_slowdown=rules.max_slowdown), []
    run, other = run_named(before)[0], run_named(after)[0]
    if is_same_run(run, other):
        raise InvalidRequest(f"{before} and {after} are the same run; give the run of another commit or version")
    found = findings_between(compare_saved_runs(run, other), max_slowdown=rules.max_slowdown)
    trades = trades_between(run, other, {each.quantity for each in rules.required})
    return [*found, *required_between(run, other, rules.required)], trades
