"""Which tool wrote a file or a folder, and the points that it holds. Nothing of it is run."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

from fairlap.errors import shortened
from fairlap.history.foreign.action_data import ASSIGNMENT, action_points, is_action_data, without_assignment
from fairlap.history.foreign.asv_results import asv_points, is_results_folder
from fairlap.history.foreign.file_reading import MOST_BYTES, Files, refuse, why_not_json
from fairlap.history.foreign.pytest_files import is_pytest_file, pytest_points
from fairlap.store.foreign_points import ForeignPoint

_HEAD_BYTES = 100_000
_MOST_KEYS = 5
_SIGNS = (b'"machine_info"', b'"lastUpdate"', b'"repoUrl"', b'"result_columns"', b'"commit_hash"')


def points_in(path: Path, project: str = "") -> list[ForeignPoint] | None:
    """Read all of them; None where no other tool wrote this."""
    points = _points_in(path, Files(), project)
    if points == []:
        raise refuse(path, "it holds no value")
    return points


def why_unknown(path: Path) -> str:
    """Explain what a file is that no other tool wrote; empty where it may be a run of fairlap."""
    if path.stat().st_size > MOST_BYTES:
        return ""
    content = Files().content(path)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        begins = content.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        if isinstance(error, json.JSONDecodeError) and begins in (b"{", b"["):
            return why_not_json(error)
        if path.suffix == ".js":
            return "no `data.js` of github-action-benchmark, which begins with `window.BENCHMARK_DATA =`"
        return "neither JSON nor a bundle of fairlap" if content.strip() else "empty"
    if not isinstance(found, dict):
        return "JSON, but no object, so neither a run of fairlap nor a result of another tool that is read"
    if "plan" in found or str(found.get("schema", "")).startswith("fairlap."):
        return ""
    keys = ", ".join(shortened(str(key)) for key in list(found)[:_MOST_KEYS])
    of_tools = "asv, github-action-benchmark and pytest-benchmark"
    return f"JSON of something else (its keys: {keys or 'none'}); read are runs of fairlap and results of {of_tools}"


def _points_in(path: Path, files: Files, project: str) -> list[ForeignPoint] | None:
    if path.is_dir():
        return _of_folder(path, files, project)
    if not path.is_file():
        return None
    head = _head(path)
    if not (ASSIGNMENT.match(head) or any(sign in head for sign in _SIGNS)):
        return None
    return _of_file(path, files, project)


def _of_folder(folder: Path, files: Files, project: str) -> list[ForeignPoint]:
    if is_results_folder(folder):
        return asv_points(folder, files, project)
    points: list[ForeignPoint] = []
    for path in files.walk(folder):
        document = files.json(path)
        if not is_pytest_file(document):
            raise refuse(path, "it is no file of pytest-benchmark, and the folder none of asv")
        points += pytest_points(path, files, document, project)
        files.require_few(points)
    return points


def _of_file(path: Path, files: Files, project: str) -> list[ForeignPoint] | None:
    content = files.content(path)
    is_script = ASSIGNMENT.match(content) is not None
    document = files.parsed(path, without_assignment(content))
    if is_action_data(document):
        return action_points(path, files, document, project)
    if is_script:
        raise refuse(path, "its data lack `entries`, or `lastUpdate`")
    if is_pytest_file(document):
        return pytest_points(path, files, document, project)
    if "commit_hash" in document and "results" in document:
        raise refuse(path, "a results file of asv is read with those next to it; give the folder `results`")
    return None


def _head(path: Path) -> bytes:
    """Read the beginning; of what is larger than is read at all, it decides who refuses it."""
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:  # reported where the file is read
        return b""
