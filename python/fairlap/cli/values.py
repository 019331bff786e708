"""What users write after an option: a share, a duration, a device, several values with commas between them."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from fairlap.errors import InvalidRequest
from fairlap.request.units import duration_s_in, share_in

OneOf = Callable[[click.Context, click.Parameter, str | None], tuple[str, ...] | None]


def a_share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    return _read(share_in, value)


def a_duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    return _read(duration_s_in, value)


def _read(reader: Callable[[str], float], value: str | None) -> float | None:
    try:
        return None if value is None else reader(value)
    except InvalidRequest as error:
        raise click.BadParameter(str(error)) from None


def not_empty(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Nothing is what an unset variable of a shell gives; a wish that is dropped would go unnoticed."""
    if value == "":
        raise InvalidRequest(f"--{param.name} is empty; give a value, or leave the option out")
    return value


def a_device(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"cpu|cuda(:\d{1,2})?", value):
        raise click.BadParameter(f"{value!r} is no device; give cpu, cuda or cuda:0")
    return "cuda:0" if value == "cuda" else value


def some_of(*offered: str) -> OneOf:
    """One or more of these, with commas between them."""

    def chosen(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
        if value is None:
            return None
        names = _parts(value)
        wrong = [name for name in names if name not in offered]
        if wrong or not names:
            raise click.BadParameter(f"{(wrong or [value])[0]!r} is not one of {', '.join(offered)}")
        return names

    return chosen


def whole_numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """One or more, with commas between them."""
    if value is None:
        return None
    try:
        numbers = tuple(int(part) for part in _parts(value))
    except ValueError:
        numbers = ()
    if not numbers:
        raise click.BadParameter(f"{value!r} is neither a whole number nor several such as 1,8")
    return numbers


def _parts(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())
