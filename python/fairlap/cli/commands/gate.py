"""``fairlap gate``: an exit status for a pull request."""

from __future__ import annotations

import click

from fairlap.cli.output import print_error, print_json
from fairlap.cli.values import a_share

_NOT_COMPARABLE = 3


class CalledWrongly(click.UsageError):
    """It compared nothing, and says so by its status: 2 would mean inconclusive."""

    exit_code = _NOT_COMPARABLE


class GateCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise CalledWrongly(error.format_message(), ctx) from None


@click.command("gate", cls=GateCommand)
@click.argument("before", metavar="RUN|BEFORE")
@click.argument("after", required=False, metavar="[AFTER]")
@click.option("--baseline", help="In one run: whom the others are held against.")
@click.option("--candidate", "candidates", multiple=True, help="In one run: who is judged.  [default: all others]")
@click.option(
    "--margin",
    callback=a_share,
    default="2%",
    metavar="SHARE",
    help="A slowdown within this share is let through.  [default: 2%]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
@click.option("--strict", is_flag=True, help="Inconclusive fails too, with status 2.")
def command(
    before: str,
    after: str | None,
    baseline: str | None,
    candidates: tuple[str, ...],
    margin: float,
    as_json: bool,
    strict: bool,
) -> None:
    """Exit with 0 when no slowdown is shown, 1 when one is, 2 when inconclusive (with --strict), 3 when not comparable.

    Runs are named by id or by file. With one, contestants of the same race are compared: the strongest evidence, since
    they took turns. With two, the same contestants of two races.
    """
    from fairlap.errors import FairlapError, InvalidRequest
    from fairlap.history.between_runs import compare_saved_runs
    from fairlap.history.gate import findings_between, findings_inside, overall
    from fairlap.store.run_sources import run_named

    try:
        run, _ = run_named(before)
        if after is not None:
            if baseline or candidates:
                raise InvalidRequest("--baseline and --candidate belong to one run; give either them or a second file")
            findings = findings_between(compare_saved_runs(run, run_named(after)[0], margin=margin), margin=margin)
        else:
            if not baseline:
                raise InvalidRequest("give a second file, or --baseline to compare contestants of one run")
            findings = findings_inside(run, baseline, candidates, margin=margin)
    except FairlapError as error:
        print_error(str(error), error.code, as_json=as_json)
        raise SystemExit(_NOT_COMPARABLE) from None
    status = overall(findings, strict=strict)
    if as_json:
        told = [{"status": finding.word, "text": finding.text} for finding in findings]
        print_json({"exit_status": int(status), "findings": told})
    else:
        for finding in findings:
            click.echo(f"{finding}")
        if not findings:
            click.echo("not comparable: the two runs have nothing in common")
    raise SystemExit(int(status))
