"""The verdicts of others beside ours, on the same processes of this machine.

    python -m tests.trust.peers --out build/trust --processes 2400

Identical processes are recorded in their order. Each rule takes as many of them as its tool would, the first half as
arm a and the second as arm b, without using one twice. Where a tool interleaves, it is drawn for each pair which of the
two is called a, ten times over. Every arm called faster is false. For power, the times of one arm are made longer by
1, 2 and 5 %. A second table says how long a race and two of the rules take to find an effect equally often.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from fairlap.verdict.false_positive_rate import false_positives

from ..generators import Floats
from . import equal_power
from .recording import Recording, record
from .rules import RULES, Rule

DRAWINGS = 10  # a rule that draws its labels is right or wrong over all drawings, not over one
EFFECTS = (0.0, 0.01, 0.02, 0.05)


@dataclass(frozen=True)
class Row:
    """How one rule did under one kind of conditions at one true effect."""

    conditions: str
    tool: str
    rule: str
    source: str
    effect: float
    right: int  # called the faster arm faster; at no effect nothing is right
    wrong: int
    verdicts: int
    seconds_per_verdict: float


def arms(recording: Recording, rule: Rule, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """Arm a and arm b of each verdict. Which of the two is called a is drawn."""
    taken = 2 * rule.processes
    found = []
    for start in range(0, len(recording.samples_ns) - taken + 1, taken):
        chunk = recording.samples_ns[start : start + taken]
        if rule.interleaved:
            for _ in range(DRAWINGS):
                pairs = rng.permuted(np.arange(taken).reshape(-1, 2), axis=1)
                found.append((chunk[pairs[:, 0]], chunk[pairs[:, 1]]))
        else:
            halves = [chunk[: rule.processes], chunk[rule.processes :]]
            first = int(rng.integers(2))
            found.append((halves[first], halves[1 - first]))
    return found


def tried(recording: Recording, rule: Rule, effect: float) -> Row:
    """Try a rule; the slowed arm is b, so that "a" is right."""
    called = [rule.decide(a, b * (1 + effect)) for a, b in arms(recording, rule, np.random.default_rng(1))]
    claimed_a, claimed_b = called.count("a"), called.count("b")
    right, wrong = (claimed_a, claimed_b) if effect else (0, claimed_a + claimed_b)
    seconds = 2 * rule.processes * recording.seconds_per_process
    return Row(recording.conditions, rule.tool, rule.rule, rule.source, effect, right, wrong, len(called), seconds)


def as_markdown(rows: list[Row]) -> str:
    lines = [
        "| conditions | tool | rule | false of identical | wrong sign at 1, 2, 5 % | found at 1 % | 2 % | 5 % "
        "| s / verdict | decided by |",
        "| --- " * 10 + "|",
    ]
    for conditions in dict.fromkeys(row.conditions for row in rows):
        for tool in dict.fromkeys(row.tool for row in rows):
            own = {row.effect: row for row in rows if (row.tool, row.conditions) == (tool, conditions)}
            null = own[0.0]
            interval = false_positives(null.wrong, null.verdicts)
            false = f"{null.wrong} / {null.verdicts}: {100 * null.wrong / null.verdicts:.1f} %"
            bounds = f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
            found = " | ".join(f"{100 * own[effect].right / own[effect].verdicts:.0f} %" for effect in EFFECTS[1:])
            wrong = ", ".join(f"{100 * own[effect].wrong / own[effect].verdicts:.0f} %" for effect in EFFECTS[1:])
            lines.append(
                f"| {conditions} | {tool} | {null.rule} | {false} {bounds} | {wrong} | {found} "
                f"| {null.seconds_per_verdict:.1f} | {null.source} |"
            )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Try the verdicts of others and ours on the same processes.")
    parser.add_argument("--out", type=Path, required=True, help="folder for peers.json and peers.md")
    parser.add_argument("--processes", type=int, default=2400, help="recorded under each kind of conditions")
    parser.add_argument("--blocks", type=int, default=60, help="recorded of a race that takes turns; 0 for none")
    parser.add_argument("--seed", type=int, default=1, help="draws the hash seeds of processes")
    options = parser.parse_args(arguments)
    if options.processes < 2 * max(rule.processes for rule in RULES):
        parser.error(f"at least {2 * max(rule.processes for rule in RULES)} processes make one verdict of every rule")
    rows: list[Row] = []
    options.out.mkdir(parents=True, exist_ok=True)
    for conditions in ("as-found", "controlled"):
        recording = record(conditions, options.processes, options.seed)
        np.save(options.out / f"peers-{conditions}.npy", recording.samples_ns)
        rows += [tried(recording, rule, effect) for rule in RULES for effect in EFFECTS]
        if conditions == "controlled" and options.blocks:
            rows_at_equal_power = equal_power.rows(equal_power.record_blocks(options.blocks, options.seed), recording)
            table = equal_power.as_markdown(rows_at_equal_power)
            (options.out / "equal-power.json").write_text(
                json.dumps([asdict(row) for row in rows_at_equal_power], indent=1) + "\n"
            )
            (options.out / "equal-power.md").write_text(table)
            print(table)
    (options.out / "peers.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    table = as_markdown(rows)
    (options.out / "peers.md").write_text(table)
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
