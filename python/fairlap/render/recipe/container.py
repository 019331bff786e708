"""The Dockerfile of a recipe, and how the container gets the user's data: read-only, at the path of the plan."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from fairlap.data.datasets import DATA_HASH, SYNTHETIC
from fairlap.machine import variables
from fairlap.race.planning.plan_reach import reach_of
from fairlap.race.run import Run
from fairlap.render.recipe.own_models import FOLDER, OwnModels
from fairlap.render.recipe.versions import Versions, unusable
from fairlap.request.names import ContestantName
from fairlap.scenarios.process_result import values_in_force


def data_to_bring(run: Run) -> dict[str, list[str]]:
    """List the paths of the user's data, with their hashes: what was fed, and what was learnt.

    There are none for data that are drawn from the plan's seed, or for built-in sets.
    """
    found: dict[str, list[str]] = {}
    if run.plan.data not in ("", SYNTHETIC):
        # As the processes reported them; several where works name their inputs differently.
        found[run.plan.data] = values_in_force(run.processes, DATA_HASH)
    learnt = [work.train_on for work in run.plan.works if work.train_on is not None and work.train_on.path]
    found |= {data.path: [data.hash] for data in learnt}
    for path in found:
        if not Path(path).is_absolute() or not path.isprintable():
            raise unusable(f"its data {path!a} is not an absolute path")
    return found


def mount_option(data: str) -> str:
    """Docker refuses a mount whose source is missing, but creates a missing volume. It reads the option as CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(["type=bind", f"source={data}", f"target={data}", "readonly"])
    return f"--mount {shlex.quote(line.getvalue())}"


# What contestants need from the system: compilers.
_COMPILER_OF_TORCH = "g++"
_COMPILER_OF_TINYGRAD = "clang"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTENED = re.compile(r"\.\.\. \([0-9]+ letters\)$")


def dockerfile(run: Run, versions: Versions, own: OwnModels) -> str:
    lines = ["# Written by `fairlap recipe` from a saved run. README.md explains its use.", *_made_in(run.machine)]
    lines += [f"FROM python:{versions.python}-slim{_release(run.machine)}", ""]
    system = _system_packages(run.plan.contestants)
    if system:
        lines.append(
            f"RUN apt-get update && apt-get install --yes --no-install-recommends {' '.join(system)} "
            "&& rm -rf /var/lib/apt/lists/*"
        )
    lines += [
        "WORKDIR /race",
        "COPY wheels wheels",
        "COPY requirements.txt constraints.txt environments.txt ./",
        "# Another package index: docker build --build-arg PIP_INDEX_URL=... --build-arg PIP_EXTRA_INDEX_URL=...",
        "ARG PIP_INDEX_URL",
        "ARG PIP_EXTRA_INDEX_URL",
        f"RUN {install_command('pip')}",
        "COPY plan.json ./",
        *([f"COPY {FOLDER} {FOLDER}"] if own else []),
    ]
    if versions.environments:
        lines.append("ENV PIP_CONSTRAINT=/race/environments.txt")
    lines += [f"ENV {name}={_quoted(value)}" for name, value in carried_variables(run.machine).items()]
    words = ["fairlap", *words_to_race(own), "-o", "/out/run.json"]
    lines.append(f"CMD [{', '.join(_quoted(word) for word in words)}]")
    return "\n".join(lines) + "\n"


def words_to_race(own: OwnModels) -> list[str]:
    """Build the command that races, which trusts the plan.

    A machine that did not draw the plan asks before it runs what the plan reaches; building the container is the
    answer.
    """
    return ["compare", "--plan", "plan.json", *(["--trust"] if reach_of(own.plan) else [])]


def install_command(pip: str) -> str:
    return (
        f"{pip} install --no-cache-dir --find-links wheels --requirement requirements.txt --constraint constraints.txt"
    )


def carried_variables(machine: Mapping[str, str]) -> dict[str, str]:
    """Those that mean the same on another machine: no paths, no values that were not recorded or were cut."""
    return {name: value for name, value in _variables(machine).items() if _means_the_same(name, value)}


def variables_left_out(machine: Mapping[str, str]) -> list[str]:
    return [name for name, value in _variables(machine).items() if not _means_the_same(name, value)]


def _variables(machine: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(variables.PREFIX): value
        for name, value in sorted(machine.items())
        if name.startswith(variables.PREFIX)
    }


def _means_the_same(name: str, value: str) -> bool:
    if _VARIABLE.fullmatch(name) is None or not value.isprintable() or _SHORTENED.search(value):
        return False
    return "/" not in value and value != variables.NOT_KEPT


def _quoted(value: str) -> str:
    """Quoted for a Dockerfile, which would expand a dollar sign."""
    bare = "" if value == variables.EMPTY else value
    return '"' + re.sub(r'(["\\$])', r"\\\1", bare) + '"'


def _made_in(machine: Mapping[str, str]) -> list[str]:
    digest = machine.get("image digest", "")
    return [f"# The run was made in an image with the digest {digest}."] if re.fullmatch(r"sha256:\w+", digest) else []


def _release(machine: Mapping[str, str]) -> str:
    """Debian's own name for its release, which decides the C library."""
    found = re.fullmatch(r"Debian GNU/Linux [0-9]+ \((?P<name>[a-z]+)\)", machine.get("distribution", ""))
    return f"-{found['name']}" if found else ""


def _system_packages(contestants: tuple[ContestantName, ...]) -> list[str]:
    found = set()
    for contestant in contestants:
        if contestant.framework == "torch" and contestant.variant == "compile":
            found.add(_COMPILER_OF_TORCH)
        if contestant.framework == "tinygrad":
            found.add(_COMPILER_OF_TINYGRAD)
    return sorted(found)
