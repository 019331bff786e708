"""The line that goes on with a race that was broken off. A run holds its plan; what was asked for beside it, this line
has to repeat."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlap.request.race_request import RaceRequest

_LEAST_BUDGET_S = 0.1


def asked_again(asked: RaceRequest, *, quiet: bool) -> tuple[str, ...]:
    """All but the JSON file and the budget, of which a part is used up by then."""
    outputs = asked.outputs
    values = {
        "csv": outputs.csv,
        "md": outputs.md,
        "html": outputs.html,
        "price": asked.price,
        "baseline": asked.baseline,
        "target": "" if asked.target is None else str(asked.target),
    }
    options = [part for name, value in values.items() if value for part in (f"--{name}", value)]
    return (*options, *(["--quiet"] if quiet else []))


def resume_command(run_id: str, json_file: Path | None, asked: tuple[str, ...], budget_left_s: float | None) -> str:
    options = [] if json_file is None else ["--json", str(json_file)]
    budget = [] if budget_left_s is None else ["--budget", f"{max(budget_left_s, _LEAST_BUDGET_S):.1f}s"]
    return shlex.join(["fairlap", "compare", "--resume", run_id, *options, *asked, *budget])
