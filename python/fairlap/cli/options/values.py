"""Types of option values: shares, durations, devices, contestants, lists, dates and output files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from fairlap.cli import completions
from fairlap.errors import InvalidRequest
from fairlap.request.commands import command_in
from fairlap.request.names import Contestants, Device, Devices, contestant_named
from fairlap.request.units import LargestSlowdown, Seconds, Share
from fairlap.suggestions import not_one_of


class Parsed(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A value that a type or function of the package reads from text."""

    def __init__(
        self,
        parse: Callable[[str], Any],
        name: str,
        offers: Callable[[str], Iterable[str]] = lambda typed: (),
        *,
        or_file: bool = False,
    ) -> None:
        self._parse = parse
        self.name = name  # what --help shows, in capitals
        self._offers, self._or_file = offers, or_file

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(each) for each in self._offers(incomplete) if each.startswith(incomplete)]
        return found + [CompletionItem(incomplete, type="file")] * self._or_file

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or isinstance(value, Devices):
            return value
        try:
            return self._parse(value)
        except (ValueError, InvalidRequest) as error:
            raise click.BadParameter(str(error), ctx, param) from error


class Choice(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """One of these, and the nearest one is named where another is given."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.choices:
            hint = f"'{param.human_readable_name}'" if isinstance(param, click.Argument) else None
            raise click.BadParameter(not_one_of(str(value), self.choices), ctx, param, hint)
        return super().convert(value, param, ctx)


class RunOrFile(Parsed):
    """A run by its id, or a run file; a bundle is checked here, and is then read as the run file that is in it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not (ctx and ctx.resilient_parsing):
            hand_over_bundle(Path(str(value)))
        return value


def hand_over_bundle(path: Path) -> None:
    """Check the bundle, if it is one, and have it read as a run file from here on."""
    if path.is_file() and _begins_as_archive(path):
        from fairlap.render.bundle.verify import checked_run_of
        from fairlap.store.runs.run_file import hand_over

        hand_over(path, checked_run_of(path))


def _begins_as_archive(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\3\4"
    except OSError:  # reported where the file is read
        return False


def one_or_more(*offered: str) -> Parsed:
    """Parse some of the offered names, separated by commas."""

    def parse(text: str) -> tuple[str, ...]:
        names = _parts(text)
        wrong = [name for name in names if name not in offered]
        if wrong or not names:
            raise ValueError(not_one_of((wrong or [text])[0], offered))
        return names

    return Parsed(parse, ",".join(offered), lambda typed: completions.one_of_several(offered, typed))


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in _parts(text))
    except ValueError:
        numbers = ()
    if not numbers:
        raise ValueError(f"{text!r} is not a whole number or a list such as 1,8")
    return numbers


def _number_or_auto(text: str) -> int | str:
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number or auto") from None


def _date(text: str) -> str:
    from fairlap.store.runs.run_ids import utc_text

    utc = utc_text(text)
    if not utc:
        raise ValueError(f"{text!r} is not a date such as 2026-01-31 or 2026-01-31T14:00")
    return utc


def _with_unit(text: str) -> Seconds:
    """Refuse a bare number where some mean milliseconds by it."""
    found = Seconds(text)
    if text.strip()[-1].isdigit() or text.strip().endswith("."):
        raise ValueError(f"{text!r} has no unit; write {text.strip()}ms or {text.strip()}s")
    return found


def _not_empty(text: str) -> str:
    """Refuse an empty value: an unset shell variable gives one, and ignoring it would go unnoticed."""
    if not text:
        raise ValueError("the value is empty; give one, or leave the option out")
    return text


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _names(text: str) -> tuple[str, ...]:
    found = _parts(text)
    _not_empty("".join(found))
    return found


SHARE = Parsed(Share, "share")
LARGEST_SLOWDOWN = Parsed(LargestSlowdown, "share")
DURATION = Parsed(Seconds, "duration")
LATENCY = Parsed(_with_unit, "duration")
DEVICE = Parsed(Device, "device")
DEVICES = Parsed(Devices, "device")
COMMAND = Parsed(command_in, "name=command")
CONTESTANT = Parsed(contestant_named, "contestant", completions.contestants)
CONTESTANTS = Parsed(Contestants, "a,b,...", completions.contestants)
MODEL = Parsed(str, "model", completions.models)
MODEL_OR_FILE = Parsed(str, "model|file", completions.models, or_file=True)
RUN = Parsed(str, "run", completions.runs)
RUN_OR_FILE = RunOrFile(str, "run|file", completions.runs, or_file=True)
NAMES = Parsed(_names, "name,...")
WHOLE_NUMBERS = Parsed(_whole_numbers, "n,...")
NUMBER_OR_AUTO = Parsed(_number_or_auto, "n|auto")
DATE = Parsed(_date, "date")
NAME = Parsed(_not_empty, "name")
PRICE = Parsed(_not_empty, "1.212/h|name")
FILE = click.Path(dir_okay=False, path_type=Path)
