"""``fairlap doctor``: whether this machine is fit to measure on."""

from __future__ import annotations

import click


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
@click.option("--seconds", default=1.0, show_default=True, help="How long to watch who else runs here.")
def command(as_json: bool, seconds: float) -> None:
    """Say what on this machine disturbs figures, what it does to them, and what mends it.

    The exit status is 0 when the machine is fit, 1 with warnings, 2 when it is not fit.
    """
    from fairlap.cli.output import print_json
    from fairlap.engine.arguments import positive_number
    from fairlap.machine.doctor.examination import examine_this_machine, findings_of
    from fairlap.machine.doctor.finding import exit_status, findings_text

    seen = examine_this_machine(positive_number("seconds", seconds))
    findings = findings_of(seen)
    if as_json:
        print_json(
            {
                "exit_status": exit_status(findings),
                "findings": findings,
                "observed": seen.observed,
                "facts": dict(seen.facts),
            }
        )
    else:
        click.echo(findings_text(findings))
    raise SystemExit(exit_status(findings))
