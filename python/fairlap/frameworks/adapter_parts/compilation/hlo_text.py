"""Counting in the texts of XLA: the operations of a StableHLO program, and the kernels of a compiled HLO module."""

from __future__ import annotations

import re
from collections import Counter

_FUNCTION = re.compile(r"^\s*func\.func (?:\w+ )?@(?P<name>[\w.$-]+)\(")
_OPERATION = re.compile(r'= "?(?:stablehlo|chlo)\.(?P<name>\w+)')
_CALL = re.compile(r"\bcall @(?P<name>[\w.$-]+)\(")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = (?:\([^=]*?\)|\S+) (?P<name>[\w-]+)\(")
_NO_KERNEL = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"})


def operations_in(stable_hlo: str) -> int:
    """Of the program that JAX lowered, without constants. A function counts as often as it is called."""
    own: Counter[str] = Counter()
    calls: dict[str, list[str]] = {}
    name = ""
    for line in stable_hlo.splitlines():
        if begins := _FUNCTION.match(line):
            name = begins["name"]
            calls[name] = []
        elif (operation := _OPERATION.search(line)) and operation["name"] != "constant":
            own[name] += 1
        if called := _CALL.search(line):
            calls[name].append(called["name"])

    def whole(of: str) -> int:
        return own[of] + sum(whole(each) for each in calls.get(of, ()))

    return whole("main")


def kernels_in(hlo: str) -> int:
    """Count the instructions of the compiled module's entry that do work: fusions, products, library calls, loops.

    An instruction that starts and ends separately counts once.
    """
    _, _, entry = hlo.partition("\nENTRY ")
    found = [match["name"] for line in entry.splitlines() if (match := _INSTRUCTION.match(line))]
    return sum(not (name in _NO_KERNEL or name.endswith("-done")) for name in found)
