"""The file of baselines: for each measured callable of a test, the medians of some processes, and their machine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.machine.files.atomic_files import write_output

CODE = "E_BASELINE_FILE"
FORMAT = 1
_Median = Annotated[float, msgspec.Meta(gt=0)]


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one callable: the median time of a call in each of its processes, in the order in which they ran."""

    medians_ns: tuple[_Median, ...]
    machine: str  # the key of its facts


class Baselines(msgspec.Struct, forbid_unknown_fields=True):
    """A file that is kept with the tests. Tests that were saved on one machine share its facts."""

    format: int = FORMAT
    tests: dict[str, Baseline] = {}
    machines: dict[str, dict[str, str]] = {}

    def facts_of(self, baseline: Baseline) -> dict[str, str]:
        return self.machines.get(baseline.machine, {})

    def save(self, test: str, medians_ns: tuple[float, ...], facts: dict[str, str]) -> None:
        key = hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:12]
        self.tests[test] = Baseline(medians_ns, key)
        self.machines[key] = facts
        used = {each.machine for each in self.tests.values()}
        self.machines = {name: each for name, each in self.machines.items() if name in used}


def read_baselines(file: Path) -> Baselines:
    """None are known where there is no file."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Baselines)
    except FileNotFoundError:
        return Baselines()
    except OSError as error:
        raise InvalidRequest(f"the baselines {file} cannot be read: {error.strerror}", code=CODE) from None
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"{file} holds no baselines: {error}", code=CODE) from None
    if found.format != FORMAT:
        raise InvalidRequest(f"{file} has format {found.format}; this fairlap reads {FORMAT}", code=CODE)
    return found


def write_baselines(file: Path, baselines: Baselines) -> None:
    """Sorted, so that a repository shows what changed."""
    ordered = Baselines(tests=dict(sorted(baselines.tests.items())), machines=dict(sorted(baselines.machines.items())))
    write_output(file, msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
