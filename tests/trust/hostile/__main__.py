"""``make trust-hostile``: every exploit and every honest callable, as a table; fails where one is judged wrongly."""

from __future__ import annotations

import itertools
import sys

from .cases import EXPLOITS, HONEST, Found, codes, exploits, honest

_BLOCKS = 12
_LIMIT_S = 20.0


def main() -> int:
    wrong = 0
    for folder, grouped in itertools.groupby(EXPLOITS, key=lambda name: name.partition("/")[0]):
        names = list(grouped)
        *found, plain = exploits(names, blocks=_BLOCKS, limit_s=_LIMIT_S)
        for name, each in zip(names, found, strict=True):
            is_right = each.code in codes(name)
            wrong += not is_right
            _print(folder, each, each.code if is_right else f"WRONG {each.code or 'RANKED'}")
        wrong += bool(plain.code)
        _print(folder, plain, plain.code or "ranked")
    for case in HONEST:
        for each in honest(case, blocks=_BLOCKS):
            wrong += bool(each.code)
            _print("honest", each, f"EXCLUDED {each.code}" if each.code else "ranked")
    print(f"\n{len(EXPLOITS)} exploits, {sum(len(case[1].split()) for case in HONEST)} honest callables, {wrong} wrong")
    return int(wrong > 0)


def _print(folder: str, found: Found, outcome: str) -> None:
    name = found.name.rpartition("/")[2].replace(".py:kernel", "")
    print(f"{folder:<10} {name:<32} {outcome:<20} {found.reason or f'{found.checked} answers right'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
