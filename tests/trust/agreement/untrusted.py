"""Whether times of callables that are not trusted agree with a plain loop over the same functions.

python -m tests.trust.agreement.untrusted --pairs 6

The sandboxed contestant has no turns of a race, so the loop runs before and after it in turn, in fresh processes. Near
the floor of what the sandbox costs no ratio is asked for: the row warns of that.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .cases import BY_HAND
from .pairs import Agreement, Pair, agreement_of
from .table import as_table

CASE = "untrusted callables"
ALLOWED = {"one_us": math.inf, "fifty_us": 0.03, "five_ms": 0.03}


def agreement_with_loop(function: str, pairs: int) -> Agreement:
    return agreement_of([pair_of(function) for _ in range(pairs)], ALLOWED[function])


def pair_of(function: str) -> Pair:
    task = str(BY_HAND / "untrusted_task.py")
    callables = BY_HAND / "untrusted_callables.py"
    options = ("--untrusted", "--budget", "6s", "--json")
    answers = ("--reference", f"{task}:exact_{function}", "--inputs", f"{task}:draw_{function}")
    found = _printed(["-m", "fairlap", "time", f"{callables}:{function}", *options, *answers])
    if found["excluded"]:
        raise RuntimeError(f"{function}: {found['excluded']}")
    [row] = found["rows"]
    print(f"{function}: floor {found['floor_ns']:.0f} ns, subtracted: {found['floor_subtracted']}", file=sys.stderr)
    by_hand: float = _printed([str(callables), function, str(found["calls_per_sample"])])["median_ns"]
    return Pair(CASE, function, 1, float(row["median_ns"]), by_hand)


def _printed(command: Sequence[str]) -> Mapping[str, Any]:
    ran = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    if not ran.stdout:
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip()}")
    printed: Mapping[str, Any] = json.loads(ran.stdout)
    return printed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.trust.agreement.untrusted")
    parser.add_argument("--pairs", type=int, default=10)
    given = parser.parse_args()
    found = [agreement_with_loop(function, given.pairs) for function in ALLOWED]
    print(as_table(found))
    sys.exit(any(each.agrees is False for each in found))


if __name__ == "__main__":
    main()
