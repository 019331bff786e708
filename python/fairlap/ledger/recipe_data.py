"""A user's data in a recipe. It stays where it lies: the container gets it read-only, at the path that the plan has."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path

from fairlap.errors import WrongRequest
from fairlap.pipelines.data import DATA_HASH, SYNTHETIC
from fairlap.race.laps import values_in_force
from fairlap.race.saving import SavedRun


def data_to_bring(run: SavedRun) -> str:
    """Empty where there is none to bring: nothing was fed, or what is drawn again from the plan's seed."""
    data = run.plan.data
    if data in ("", SYNTHETIC):
        return ""
    if not Path(data).is_absolute() or not data.isprintable():
        raise WrongRequest(f"the run says that it was fed {data!a}, which is no path that a container could be given")
    return data


def hashes_of_data(run: SavedRun) -> list[str]:
    """As the processes that were fed kept them; several where works name their inputs differently."""
    return values_in_force(run.laps, DATA_HASH)


def mount_option(data: str) -> str:
    """Docker refuses a mount whose source is missing, where it would make a folder for a volume. It reads the option as
    a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(["type=bind", f"source={data}", f"target={data}", "readonly"])
    return f"--mount {shlex.quote(line.getvalue())}"
