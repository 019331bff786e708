"""``fairlap diff BEFORE AFTER``: what changed between two runs."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON, REQUIRED_CHANGES
from fairlap.cli.options.values import RUN_OR_FILE, SHARE
from fairlap.cli.output import print_result
from fairlap.errors import InvalidRequest


@click.command(
    "diff",
    cls=Command,
    examples="""
fairlap diff before.json after.json
    Show what changed between two runs.
""",
)
@click.argument("before", type=RUN_OR_FILE, metavar="BEFORE")
@click.argument("after", type=RUN_OR_FILE, metavar="AFTER")
@click.option(
    "--margin",
    type=SHARE,
    default="2%",
    help="Ignore differences below SHARE.  [default: 2%]",
)
@REQUIRED_CHANGES
@OUTPUT_JSON
@JSON
def command(
    before: str, after: str, margin: float, require: tuple[str, ...], output: tuple[Path, ...], as_json: bool
) -> None:
    """Compare two runs: ids of stored runs, or run files.

    First come the ratios between contestants, which are what a race claims. A ratio is refuted where its intervals
    in the two runs have no value in common. The times of each contestant follow.

    The processes of two runs did not alternate, so a change of the code cannot be separated from one of the machine.
    Intervals are widened by what may have changed, and different work or processors are not compared.
    Where both runs have profiles, the operators that account for a difference follow, the largest first.
    What --require, or the require of `gate.toml`, bounds is judged as `fairlap gate` does. What the faster of the two
    is shown to cost, such as memory, is one sentence.

    Exit status: 1 when nothing could be compared, as when both are the same run; 2 for an invalid request, as when
    something is required of one run and itself.
    """
    from fairlap.history.between_runs import compare_saved_runs, is_same_run
    from fairlap.history.gate import require_known, required_between
    from fairlap.history.operators import compare_operators
    from fairlap.history.ratios_between_runs import compare_ratios
    from fairlap.history.runs_differ import RunsDiffer
    from fairlap.history.text import operators_text, ratios_text, runs_text
    from fairlap.history.trades_between_runs import trades_between
    from fairlap.machine.differences import differences, differences_text
    from fairlap.race.planning.plan_modules import differing_code
    from fairlap.request.gate_file import gate_rules
    from fairlap.results.results import results_of
    from fairlap.store.runs.run_sources import run_named
    from fairlap.verdict import Change

    required = gate_rules(require=require).required
    require_known(required)
    (old, old_id), (new, _) = run_named(before), run_named(after)
    if is_same_run(old, new):
        if required:
            raise InvalidRequest(
                f"{before} and {after} are the same run, and what is required is judged between two; give another run, "
                "or leave out --require and the require of gate.toml",
                code="E_REQUIRE",
            )
        document = RunsDiffer(True, (), (), [], (), [], [])
        text = f"{before} and {after} are the same run, {old_id}; there is nothing to compare"
        print_result(document, text, as_json=as_json, output=output)
        raise SystemExit(1)
    compared = compare_saved_runs(old, new, margin=margin)
    of_works = compare_ratios(compared, results_of(old), results_of(new))
    ratios = tuple(ratio for each in of_works for ratio in each.ratios)
    operators = compare_operators(old, new, compared, margin=margin)
    code = differing_code(old.plan.modules, new.plan.modules)
    findings = required_between(old, new, required)
    trades = trades_between(old, new, {each.quantity for each in required})
    of_machine = [str(each) for each in differences(old.machine, new.machine)]
    document = RunsDiffer(
        same_run=False,
        ratios=ratios,
        differences=compared.differences,
        operators=operators,
        not_compared=compared.unmatched,
        machine=of_machine,
        code=code,
        required=tuple(each.printed for each in findings),
        trades=tuple(trades),
    )
    traded = [f"trade: {each}" for each in trades]
    of_times = [runs_text(compared), *map(str, findings), *traded, *map(operators_text, operators)]
    texts = [ratios_text(of_works), *of_times, differences_text(old.machine, new.machine)]
    texts.append(f"the code of the runs differs: {', '.join(code)} [W_CODE_CHANGED]" if code else "")
    text = "\n".join(filter(None, texts))
    print_result(document, text, as_json=as_json, output=output)
    if all(each.regression.change is Change.NOT_COMPARABLE for each in compared.differences):
        raise SystemExit(1)
