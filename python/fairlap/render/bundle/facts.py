"""Parts that follow from the run: its environment, its hashes; and the licences of what it ran."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

import msgspec

from fairlap.data.datasets import DATA_HASH
from fairlap.errors import FairlapError
from fairlap.machine import software
from fairlap.race.run import Run
from fairlap.render.bundle.manifest import sha256
from fairlap.scenarios.process_result import values_in_force

_LICENCE = "Apache-2.0"
_UNKNOWN = "unknown: {0} is not installed here in version {1}"
_CLASSIFIER = "License :: "


def environment_of(run: Run) -> dict[str, Any]:
    """Collect the machine, the software and the settings in force of each contestant."""
    names = [name.text for name in run.plan.contestants]
    own = {name: [process for process in run.processes if process.contestant == name] for name in names}
    return {
        "fairlap": run.fairlap,
        "began_at": run.began_at,
        "machine": dict(sorted(run.machine.items())),
        "versions": {
            name: sorted({process.version for process in processes if process.version})
            for name, processes in own.items()
        },
        "settings": {
            name: next((process.in_force for process in processes if process.in_force), {})
            for name, processes in own.items()
        },
    }


def hashes_of(run: Run) -> dict[str, Any]:
    """SHA-256 of everything that decides the work, as far as the run recorded them."""
    works = {work.label: work for work in run.plan.works}
    return {
        "plan": sha256(msgspec.json.encode(run.plan)),
        "model_files": {label: dict(work.source.files) for label, work in works.items() if work.source is not None},
        "start_weights": {label: work.start.sha256 for label, work in works.items() if work.start is not None},
        "training_data": {label: work.train_on.hash for label, work in works.items() if work.train_on is not None},
        "fed_data": values_in_force(run.processes, DATA_HASH),
        "data_seeds": list(run.plan.data_seeds),
    }


def licences_of(run: Run) -> dict[str, Any]:
    """As the installed packages state them; of another version than the one that ran nothing is claimed."""
    versions = {
        name.removeprefix(software.PREFIX): version
        for name, version in sorted(run.machine.items())
        if name.startswith(software.PREFIX)
    }
    return {
        "fairlap": _LICENCE,
        "packages": {f"{name} {version}": _licence(name, version) for name, version in versions.items()},
        "models": {
            work.label: "part of fairlap" if work.source is None else "your own; fairlap does not know its licence"
            for work in run.plan.works
        },
        "data": {work.label: _licence_of_data(work.train_on.text, own=bool(work.train_on.path))
                 for work in run.plan.works if work.train_on is not None},
    }  # fmt: skip


def _licence(name: str, version: str) -> str:
    try:
        found = metadata(name)
    except PackageNotFoundError:
        return _UNKNOWN.format(name, version)
    except Exception:  # broken metadata can raise anything
        return "unknown: its metadata cannot be read"
    version_found, expression, text = (
        next(iter(found.get_all(field) or ()), "") for field in ("Version", "License-Expression", "License")
    )
    if version_found != version:
        return _UNKNOWN.format(name, version)
    listed = [
        each.removeprefix(_CLASSIFIER) for each in found.get_all("Classifier") or [] if each.startswith(_CLASSIFIER)
    ]
    stated = expression or "; ".join(listed) or text.strip().partition("\n")[0]
    return str(stated) or "not stated"


def _licence_of_data(name: str, *, own: bool) -> str:
    if own:
        return "your own; fairlap does not know its licence"
    from fairlap.data.labelled.built_in import labelled_set

    try:
        return labelled_set(name).licence or "not stated"
    except FairlapError as error:
        return f"unknown: {error}"
