"""What a contestant's name says: ``torch``, ``torch:compile``, ``torch==2.13.0``, ``./my_worker:fast``."""

from __future__ import annotations

import re

import msgspec

from fairlap.errors import InvalidRequest

_PACKAGE = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*?)\s*(?P<version>(==|~=|>=|<=|!=|<|>)\s*[^:\s]+)?$")


class ContestantName(msgspec.Struct, frozen=True):
    """A framework with a variant, in a version when one is asked for; or a program that speaks the worker protocol."""

    text: str  # as it was given; what tables show
    framework: str  # empty for a program
    version: str = ""  # a version always means an environment of its own
    variant: str = ""
    options: tuple[tuple[str, str], ...] = ()
    program: str = ""


def contestant_named(text: str) -> ContestantName:
    """``REQUIREMENT[:VARIANT][:OPTION=VALUE]...``; a requirement with a slash in it is a program."""
    whole = text.strip()
    if any("\ud800" <= letter <= "\udfff" for letter in whole):  # what the shell gave is no UTF-8
        raise InvalidRequest(f"{whole!a} is not a contestant: it is no text that a file could hold")
    target, *further = whole.split(":")
    options = tuple(_option(part, whole) for part in further if "=" in part)
    variants = [part.strip() for part in further if "=" not in part]
    if len(variants) > 1 or any(not variant for variant in variants):
        raise InvalidRequest(
            f"{text!r} names {len(variants)} variants; write it as torch, torch:compile or torch==2.13.0"
        )
    variant = variants[0] if variants else ""
    if "/" in target:
        return ContestantName(whole, "", variant=variant, options=options, program=target)
    found = _PACKAGE.match(target)
    if found is None:
        raise InvalidRequest(f"{text!r} is not a contestant; write it as torch, torch:compile or torch==2.13.0")
    version = re.sub(r"\s", "", found["version"] or "")
    return ContestantName(whole, found["name"], version, variant, options)


def contestants_named(listed: str) -> tuple[ContestantName, ...]:
    """A comma-separated list. Each may stand in it once, since two rows of one name could not be told apart."""
    names = tuple(contestant_named(part) for part in listed.split(",") if part.strip())
    if not names:
        raise InvalidRequest("no contestant is named; give --on torch,jax for example")
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            raise InvalidRequest(f"{name.text} is named twice")
        seen.add(name.text)
    return names


def _option(part: str, whole: str) -> tuple[str, str]:
    key, _, value = part.partition("=")
    if not key.strip() or not value.strip():
        raise InvalidRequest(f"{whole!r}: {part!r} is not of the form OPTION=VALUE")
    return key.strip(), value.strip()
