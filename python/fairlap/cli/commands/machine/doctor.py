"""``fairlap doctor``: whether this machine is fit for measuring."""

from __future__ import annotations

from pathlib import Path

import click

from fairlap.cli.help import Command
from fairlap.cli.options.output_options import JSON, OUTPUT_JSON
from fairlap.cli.options.values import DURATION
from fairlap.machine.doctor.finding import Finding
from fairlap.machine.doctor.observation import Observed
from fairlap.printed_document import PrintedDocument


class Examination(PrintedDocument, frozen=True, tag="fairlap.doctor/1"):
    exit_status: int
    findings: list[Finding]  # the most severe first
    observed: Observed
    facts: dict[str, str]  # of the machine


@click.command(
    "doctor",
    cls=Command,
    examples="""
fairlap doctor
    Show what disturbs measurements here, and how to fix it.
""",
)
@OUTPUT_JSON
@JSON
@click.option("--seconds", type=DURATION, default="1s", show_default=True, help="Watch other processes for this long.")
def command(output: tuple[Path, ...], as_json: bool, seconds: float) -> None:
    """Check whether this machine is fit for measuring: what disturbs results, how much, and how to fix it.

    Exit status: 0 when the machine is fit, 1 with warnings, 2 when it is not fit.
    """
    from fairlap.cli.output import print_result
    from fairlap.machine.doctor.examination import examine_this_machine, findings_of
    from fairlap.machine.doctor.finding import exit_status, findings_text

    seen = examine_this_machine(float(seconds))
    findings = findings_of(seen)
    document = Examination(exit_status(findings), findings, seen.observed, dict(seen.facts))
    print_result(document, findings_text(findings), as_json=as_json, output=output)
    raise SystemExit(exit_status(findings))
