"""Where rankings flip: two contestants in one order on a work and machine, and in the other order elsewhere.

An order counts where a run shows it: both have a place there, and one of the places is certain. Each is at the error
rate of its run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import msgspec

from fairlap.history.across.lines import Entry

_TIE = "="
FIELDS = ("machine", "model", "mode", "precision", "batch", "data", "threads", "conditions")

Context = tuple[str, ...]  # of these fields
Pair = tuple[str, str]


class Where(msgspec.Struct, frozen=True):
    run: str
    work: str
    machine: str


class Flip(msgspec.Struct, frozen=True):
    """``one`` is before ``other`` here, and after it there."""

    one: str
    other: str
    here: Where
    there: Where
    differs: dict[str, tuple[str, str]]  # what differs between the two: by its name, here and there

    @property
    def text(self) -> str:
        changed = [f"{name} {here or 'none'} → {there or 'none'}" for name, (here, there) in self.differs.items()]
        before, after = f"{self.one} before {self.other}", f"{self.other} before {self.one}"
        return f"{'; '.join(changed)}: {before} ({_shown(self.here)}), then {after} ({_shown(self.there)})"


def flips_of(entries: Sequence[Entry]) -> list[Flip]:
    """List, for each pair and each thing that alone differs, one flip; where several always differ, one in all."""
    orders: dict[Pair, list[tuple[Context, Where, bool]]] = defaultdict(list)
    for context, where, one, other, is_before in _orders(entries):
        pair = (one, other) if one < other else (other, one)
        orders[pair].append((context, where, is_before == (one < other)))
    found = []
    for pair, seen in orders.items():
        if len({is_before for _, _, is_before in seen}) == 1:
            continue
        alone = list(_by_one_field(pair, seen))
        found += alone or [_flip(pair, *_first_of_each(seen))]
    return found


def _by_one_field(pair: Pair, seen: Sequence[tuple[Context, Where, bool]]) -> Iterator[Flip]:
    for place in range(len(FIELDS)):
        groups: dict[Context, list[tuple[Context, Where, bool]]] = defaultdict(list)
        for each in seen:
            groups[(*each[0][:place], *each[0][place + 1 :])].append(each)
        for own in groups.values():
            opposite = _first_of_each(own)
            if len(opposite) > 1 and opposite[0][0] != opposite[1][0]:
                yield _flip(pair, *opposite)
                break


def _first_of_each(seen: Iterable[tuple[Context, Where, bool]]) -> list[tuple[Context, Where, bool]]:
    """One in each order, the first of all first."""
    return list({is_before: (context, where, is_before) for context, where, is_before in reversed([*seen])}.values())[
        ::-1
    ]


def _flip(pair: Pair, here: tuple[Context, Where, bool], there: tuple[Context, Where, bool]) -> Flip:
    one, other = pair if here[2] else (pair[1], pair[0])
    differing = zip(FIELDS, here[0], there[0], strict=True)
    return Flip(one, other, here[1], there[1], {name: (a, b) for name, a, b in differing if a != b})


def _orders(entries: Sequence[Entry]) -> Iterator[tuple[Context, Where, str, str, bool]]:
    """Yield each pair of contestants of a run and work, with whether the first is before the other."""
    works: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.line.place is not None:
            works[entry.line.run, *entry.line.done].append(entry)
    for own in works.values():
        for one, other in combinations(own, 2):
            a, b = str(one.line.place), str(other.line.place)
            is_certain = not (a.endswith(_TIE) and b.endswith(_TIE))
            if is_certain and _number(a) != _number(b):
                where = Where(one.line.run, one.line.work, one.line.machine)
                yield _context(one), where, one.line.contestant, other.line.contestant, _number(a) < _number(b)


def _context(entry: Entry) -> Context:
    line, row = entry.line, entry.row
    return (
        line.machine,
        row.workload,
        row.mode,
        row.precision,
        str(row.batch),
        line.data,
        str(line.threads),
        line.conditions,
    )


def _number(place: str) -> int:
    digits = place.rstrip(_TIE)
    return int(digits) if digits.isdecimal() else 0


def _shown(where: Where) -> str:
    return f"{where.work}, run {where.run}"
