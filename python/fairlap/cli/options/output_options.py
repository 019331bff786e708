"""Options that several commands share: --json, -o/--output, and those of a race."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from fairlap.cli.options.option_groups import grouped
from fairlap.cli.options.values import DURATION, FILE, LARGEST_SLOWDOWN, NAME, PRICE
from fairlap.errors import InvalidRequest
from fairlap.machine.files.atomic_files import why_not_writable

if TYPE_CHECKING:
    from fairlap.render.outputs import Format

_Command = TypeVar("_Command", bound=Callable[..., None])

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def output_option(help_text: str, metavar: str = "FILE") -> Callable[[_Command], _Command]:
    return click.option("-o", "--output", multiple=True, type=FILE, metavar=metavar, help=help_text)


OUTPUT = output_option("Write FILE; its suffix decides the format. Repeatable.")
OUTPUT_JSON = output_option("Write the JSON document to a file.", "FILE.json")
BASELINE = click.option("--baseline", metavar="NAME", type=NAME, help="Baseline contestant.  [default: the fastest]")
PRICE_OPTION = click.option("--price", type=PRICE, help="Price of an hour, or a name in `fairlap list prices`.")
REQUIRE = click.option(
    "--require",
    multiple=True,
    callback=lambda _context, _option, given: ",".join(given) or None,
    type=NAME,
    metavar="COLUMN<LIMIT,...",
    help="Mark which qualify: latency_p99<20ms, memory<4GB. Repeatable.",
)
REQUIRED_CHANGES = click.option(
    "--require",
    multiple=True,
    metavar="QUANTITY<=+SHARE",
    help="Bound another quantity: memory_peak<=+2%. Repeatable.",
)
FOR = click.option(
    "--for", "use", type=NAME, metavar="USE", help="Recommend a contestant for a use: edge, cloud or research."
)
MAX_SLOWDOWN = click.option(
    "--max-slowdown",
    type=LARGEST_SLOWDOWN,
    metavar="SHARE",
    help="Decide whether others are slower than --baseline by more than this.",
)
SANDBOX = click.option(
    "--sandbox",
    is_flag=True,
    default=None,
    help="Confine contestants: no network, only their model to read.",
)
WAIT = click.option(
    "--wait/--no-wait", default=None, help="Wait while another race uses the same cores.  [default: wait]"
)
SECONDS = click.option("--seconds", type=DURATION, help="Time measured in each process.  [default: 0.4s]")
PASS_ENV = click.option(
    "--pass-env", multiple=True, metavar="NAME", help="Pass a variable that looks like a secret. Repeatable."
)
_RACE_OPTIONS = (
    BASELINE,
    PRICE_OPTION,
    REQUIRE,
    FOR,
    OUTPUT,
    click.option(
        "--remote",
        is_flag=True,
        default=None,
        help="Send inputs to servers on other machines too.",
    ),
    click.option(
        "--pass-env",
        multiple=True,
        metavar="NAME",
        help="Pass a variable that looks like a secret: HF_TOKEN. Repeatable.",
    ),
    WAIT,
    click.option("--store/--no-store", default=True, help="Store the run; see `fairlap runs`.  [default: store]"),
    click.option("--quiet", "-q", is_flag=True, help="Show no progress."),
    JSON,
)
_OF_TRAINING_AND_PROFILES = (
    click.option(
        "--keep-weights",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="With --to-score: write the weights that each learnt into FOLDER.",
    ),
    click.option(
        "--trace",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="With --profile: write the profilers' traces into FOLDER.",
    ),
)


options_of_any_race = grouped(_RACE_OPTIONS)  # those that mean something for a race of load too
race_options = grouped((*_RACE_OPTIONS, *_OF_TRAINING_AND_PROFILES))


def writable(paths: Iterable[Path], *, only: Collection[str] = ()) -> list[tuple[Path, Format]]:
    """Files with their formats, checked before anything runs. ``only`` has the suffixes that a command writes."""
    from fairlap.render.outputs import FORMATS, format_of

    among = {suffix: FORMATS[suffix] for suffix in only} or FORMATS
    files = [(path, format_of(path, among)) for path in paths]
    places: set[str] = set()
    for path, chosen in files:
        place = os.path.realpath(path)
        if place in places:
            raise _cannot_write(path, "it is given twice")
        places.add(place)
        require_writable(path)
        if missing := chosen.missing():
            raise InvalidRequest(missing, code="E_NOT_AVAILABLE")
    return files


def require_writable(path: Path) -> None:
    if not path.parent.exists():
        raise _cannot_write(path, f"the folder {path.parent} does not exist")
    if not path.parent.is_dir():
        raise _cannot_write(path, f"{path.parent} is not a folder")
    if why := why_not_writable(path):
        raise _cannot_write(path, why)
    if path.is_dir():
        raise _cannot_write(path, "it is a folder")
    if Path(os.path.realpath(path)).is_symlink():
        raise _cannot_write(path, "it is a link to itself")


def _cannot_write(path: Path, reason: str) -> InvalidRequest:
    return InvalidRequest(f"cannot write {path}: {reason}", code="E_FILE")
