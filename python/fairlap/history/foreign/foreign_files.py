"""Which tool wrote a file or a folder, and the points that it holds. Nothing of it is run."""

from __future__ import annotations

from pathlib import Path

from fairlap.history.foreign.action_data import ASSIGNMENT, action_points, is_action_data, without_assignment
from fairlap.history.foreign.asv_results import asv_points, is_results_folder
from fairlap.history.foreign.file_reading import Files, refuse
from fairlap.history.foreign.pytest_files import is_pytest_file, pytest_points
from fairlap.store.foreign_points import ForeignPoint

_HEAD_BYTES = 100_000
_SIGNS = (b'"machine_info"', b'"lastUpdate"', b'"repoUrl"', b'"result_columns"', b'"commit_hash"')


def points_in(path: Path, project: str = "") -> list[ForeignPoint] | None:
    """Read all of them; None where no other tool wrote this."""
    points = _points_in(path, Files(), project)
    if points == []:
        raise refuse(path, "it holds no value")
    return points


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
        raise refuse(path, "its data have no entries")
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
