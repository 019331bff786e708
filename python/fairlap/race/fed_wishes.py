"""What a user asks of a fed race, refused before it begins."""

from __future__ import annotations

import os
from collections.abc import Iterable

from fairlap.errors import WrongRequest
from fairlap.pipelines.choosing import OPTION, choice_in
from fairlap.pipelines.data import SYNTHETIC, require_feedable
from fairlap.race.naming import ContestantName
from fairlap.race.plan import Work
from fairlap.workloads.registry import find


def require_data(text: str | None, works: Iterable[Work], device: str) -> str:
    """As the plan holds it: empty where nothing is fed, else a path from the root on, to be raced from anywhere."""
    if text is None:
        return ""
    if not text:
        raise WrongRequest("there is no data at ''; give synthetic, a .npy file or a folder of them, or leave data out")
    try:
        whole = text if text == SYNTHETIC else os.path.realpath(text)  # a link to itself stays as it is
    except ValueError as error:
        raise WrongRequest(f"{text!r} is no path: {error}") from None
    for work in works:
        require_feedable(whole, find(work.model).spec, work, device)
    return whole


def require_choices(contestants: Iterable[ContestantName], *, fed: bool) -> None:
    for name in contestants:
        options = dict(name.options)
        if OPTION in options and not fed:
            raise WrongRequest(f"{name.text}: {OPTION}= says who feeds, and nothing is fed; give --data synthetic too")
        if fed and name.program:
            raise WrongRequest(f"{name.text}: a program that speaks the worker protocol cannot be fed; leave it out")
        try:
            choice_in(options, name.framework)
        except WrongRequest as wrong:
            raise WrongRequest(f"{name.text}: {wrong}") from None
