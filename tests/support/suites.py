"""Suites in a folder, and races of them whose times are given instead of measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fairlap.cli.races import suite_races
from fairlap.cli.races.recorder import StoredRun
from fairlap.cli.races.run_race import RunOutput
from fairlap.meters.memory import Memory
from fairlap.race.planning.plan import Plan
from fairlap.race.run import Run
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult, Timing

LOOP = "def {name}():\n    total = 0\n    for each in range({steps}):\n        total += each\n    return total\n\n\n"
INTERRUPTED = 130


def folders_of_callables(where: Path, base: Mapping[str, int], change: Mapping[str, int]) -> None:
    """Write the module pk.hot into both; a callable takes so many steps of a loop."""
    for side, steps in (("base", base), ("change", change)):
        (where / side / "pk").mkdir(parents=True)
        (where / side / "pk" / "hot.py").write_text(
            "".join(LOOP.format(name=name, steps=count) for name, count in steps.items())
        )


def suite_of_calls(names: Sequence[str], shared: str = "", tags: Mapping[str, str] | None = None) -> str:
    races = [
        f'[[race]]\nname = "{name}"\ncall = "pk.hot:{name}"\ntags = ["{(tags or {}).get(name, "all")}"]\n'
        for name in names
    ]
    return shared + "\n" + "\n".join(races)


@dataclass
class GivenRaces:
    """Stands in for running a plan. By the name of a callable, how many times as long the change takes; 1 if none."""

    change: dict[str, float] = field(default_factory=dict)
    blocks: int = 16
    spread: float = 0.004
    peak_of_change: float = 0.0  # times that of the base; 0 where memory is not known
    fails: set[str] = field(default_factory=set)
    interrupts_at: str = ""
    ran: list[str] = field(default_factory=list)
    plans: dict[str, Plan] = field(default_factory=dict)

    def run_race(self, plan: Plan, output: RunOutput, resumed: StoredRun | None = None) -> int:
        options = dict(plan.contestants[-1].options)
        called = options.get("call") or options.get("name") or plan.contestants[-1].text
        name = called.rpartition(".")[2]
        self.ran.append(name)
        self.plans[name] = plan
        blocks = 2 if name == self.interrupts_at else self.blocks
        run = Run(plan, self._processes(plan, name, blocks), {}, {"whole": 1.0}, "2026-01-02T03:04:05+00:00")
        assert output.answer is not None
        output.answer(results_of(run), f"run-of-{name}")
        if name == self.interrupts_at:
            return INTERRUPTED
        return int(name in self.fails)

    def _processes(self, plan: Plan, name: str, blocks: int) -> list[ProcessResult]:
        rng = random.Random(f"{name} {plan.seed}")
        found = []
        for block in plan.blocks[:blocks]:
            for place in block.order:
                contestant = plan.contestants[place].text
                times = self.change.get(name, 1.0) if contestant == "change" else 1.0
                ns = 1e6 * times * rng.lognormvariate(0, self.spread)
                process = ProcessResult(block.number, 0, contestant, plan.works[0].id, block.conditions)
                process.timings = {"wall_ns": Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)}
                process.in_force = {"threads": "1", "precision": "fp32"}
                if self.peak_of_change:
                    times = self.peak_of_change if contestant == "change" else 1.0
                    process.memory = Memory({"peak": int(1e8 * times)})
                if name in self.fails:
                    process.outcome, process.code, process.message = "crash", "E_CRASH", "ended by SIGSEGV"
                    process.timings = {}
                found.append(process)
        return found


def given_races(patched: pytest.MonkeyPatch, **options: object) -> GivenRaces:
    races = GivenRaces(**options)  # type: ignore[arg-type]
    run: Callable[..., int] = races.run_race
    patched.setattr(suite_races, "run_race", run)
    return races
