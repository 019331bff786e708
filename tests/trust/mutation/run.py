"""Experiment 12: are the tests of the verdict able to notice a fault in it?

    python -m tests.trust.mutation.run --out build/trust              every mutant, about an hour on one core
    python -m tests.trust.mutation.run --out build/trust --every 10   one in ten

Each mutant lives in a forked child in which the changed module takes the place of the real one, and is killed
if the unit tests named for its module fail, or hang for a minute. The files on disk are never changed.
"""

import argparse
import contextlib
import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import time
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path

from .mutants import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[3]
VERDICT = ROOT / "python" / "fairlap" / "verdict"
TESTS = ROOT / "tests" / "unit" / "verdict"
NOT_MUTATED = {"__init__", "arrays", "errors", "warnings"}
TESTED_BY: dict[str, tuple[str, ...]] = {
    "blocks": ("blocks",),
    "comparison": ("comparison_and_standing", "judge"),
    "contestant_figure": ("modes",),
    "dependence": ("beside_and_self_test",),
    "detectable": ("detectable_and_planning", "judge"),
    "equivalence": ("equivalence_and_sign", "judge"),
    "errors": ("blocks",),
    "expected_beside": ("beside_and_self_test",),
    "false_positives": ("beside_and_self_test",),
    "holm": ("holm", "judge"),
    "judge": ("judge",),
    "metric": ("blocks", "judge", "sentence"),
    "mode_causes": ("modes",),
    "modes": ("modes",),
    "noise_gate": ("noise_gate",),
    "planning": ("detectable_and_planning",),
    "positive": ("blocks",),
    "process_figure": ("steady_state",),
    "rank_sum": ("regression",),
    "regression": ("regression",),
    "sentence": ("sentence",),
    "sign_interval": ("equivalence_and_sign",),
    "signed_rank": ("signed_rank", "judge"),
    "standing": ("comparison_and_standing",),
    "steady_state": ("steady_state",),
    "stopping": ("stopping",),
}
_SECONDS_PER_MUTANT = 60
_SURVIVED = 0
_HEAVY = (
    "arch.bootstrap",
    "hypothesis",
    "pytest",
    "ruptures",
    "scipy.stats",
    "statsmodels.stats.multitest",
    "statsmodels.stats.weightstats",
)


class _InPlaceOf(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Hands out the changed source when the module of this name is imported."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname == self.name else None

    def exec_module(self, module: types.ModuleType) -> None:
        exec(compile(self.source, f"<mutant of {self.name}>", "exec"), module.__dict__)


def survives(module: str, mutant: Mutant) -> bool:
    """Run the tests of the module against the mutant in a forked child."""
    child = os.fork()
    if child == 0:
        os._exit(_tested(module, mutant.source))
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == _SURVIVED


def _tested(module: str, source: str) -> int:
    import pytest
    from hypothesis import HealthCheck, Phase, settings

    signal.alarm(_SECONDS_PER_MUTANT)
    settings.register_profile(
        "mutation",
        max_examples=25,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # a failure is enough; the smallest one would take minutes to find
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")
    sys.meta_path.insert(0, _InPlaceOf(f"fairlap.verdict.{module}", source))
    files = [str(TESTS / f"test_{name}.py") for name in TESTED_BY[module]]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:timeout", "-o", "addopts=", "-W", "ignore"]
    # One test starts an interpreter of its own, which would import the real module.
    options += ["-k", "not imports_no_heavy_library", "--no-header", "--tb=no"]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        return 0 if pytest.main([*options, *files]) == 0 else 1


def _import_what_tests_need() -> None:
    """Once in the parent, so that no child pays for it; the verdict itself must stay unimported."""
    for name in _HEAVY:
        importlib.import_module(name)
    assert not any(name.startswith("fairlap.verdict") for name in sys.modules)
    gc.freeze()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Plant faults in the verdict; count those noticed.")
    parser.add_argument("--out", type=Path, required=True, help="folder for mutation.json")
    parser.add_argument("--every", type=int, default=1, help="take one mutant in so many")
    parser.add_argument("modules", nargs="*", default=sorted(set(TESTED_BY) - NOT_MUTATED))
    options = parser.parse_args(arguments)
    _import_what_tests_need()
    rows: list[dict[str, object]] = []
    for module in options.modules:
        if not survives(module, Mutant(0, "none", (VERDICT / f"{module}.py").read_text())):
            sys.exit(f"the tests of {module} fail without any fault; mend them first")
        started = time.perf_counter()
        chosen = list(mutants_of((VERDICT / f"{module}.py").read_text()))[:: options.every]
        alive = [mutant for mutant in chosen if survives(module, mutant)]
        rows.append(
            {
                "module": module,
                "mutants": len(chosen),
                "killed": len(chosen) - len(alive),
                "survivors": [f"line {mutant.line}: {mutant.change}" for mutant in alive],
            }
        )
        took = time.perf_counter() - started
        print(f"{module}: {len(chosen) - len(alive)} of {len(chosen)} killed, {took:.0f} s", flush=True)
        for mutant in alive:
            print(f"    line {mutant.line}: {mutant.change}", flush=True)
    mutants = sum(int(str(row["mutants"])) for row in rows)
    killed = sum(int(str(row["killed"])) for row in rows)
    options.out.mkdir(parents=True, exist_ok=True)
    summary = {"mutants": mutants, "killed": killed, "share": killed / mutants, "modules": rows}
    (options.out / "mutation.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(f"{killed} of {mutants} killed: {100 * killed / mutants:.1f} %")
    return 0 if killed >= 0.9 * mutants else 1


if __name__ == "__main__":
    sys.exit(main())
