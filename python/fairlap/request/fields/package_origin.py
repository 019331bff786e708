"""Where a contestant's package comes from: ``with=numpy==2.1.0``, a wheel, a source folder or a commit; and its Python.

A user names a file, folder, commit or image as is convenient. A plan has it pinned: by the hash of the bytes, by that
of all files, by the whole commit or by the image's id, so that it runs the same or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fairlap.errors import InvalidRequest
from fairlap.secrets import without_secrets

WITH, PYTHON, BUILD = "with", "python", "build"
INDEX, FIND_LINKS = "index", "find_links"
DOCKER = "docker"  # an image, in a container of which it runs
INSTALLED_FIRST = "FAIRLAP_INSTALLED_FIRST"
"""A variable of a process whose package was installed for it: the current folder is then searched last."""

OF_ENVIRONMENTS = (WITH, PYTHON, BUILD, INDEX, FIND_LINKS, DOCKER)
"""Options of any contestant that runs in Python, which say what its environment is made from."""

E_CONTESTANT = "E_CONTESTANT"
_GIT = "git+"
_PACKAGE = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_PINNED = re.compile(
    rf"(?P<package>{_PACKAGE})(?P<extras>\[[A-Za-z0-9._,-]*\])?("
    r"==(?P<version>[A-Za-z0-9.!+_*-]+)"
    r"| @ (?P<wheel>file:///[^\s#]+)#sha256=(?P<sha256>[0-9a-f]{64})"
    r"| @ (?P<folder>file:///[^\s#]*)#tree=(?P<tree>[0-9a-f]{64})"
    r"| @ git\+(?P<repository>(file|https|ssh)://[^\s#]+)@(?P<commit>[0-9a-f]{40}([0-9a-f]{24})?))"
)
_IMAGE = re.compile(r"(?P<image>[A-Za-z0-9][A-Za-z0-9._/:@-]*)(#sha256=(?P<id>[0-9a-f]{64}))?")
_BEFORE_TAG = re.compile(r"(^|@)docker=(([^@]*/)?[^:/@]+|[^@]+@sha256)$")
_COMMIT = re.compile(r"git\+(?P<repository>(file|https|ssh)://[^\s#]+)@(?P<revision>[^\s#@:-][^\s#@:]*)")
_VERSION_OF_PYTHON = re.compile(r"\d\.\d{1,2}(\.\d{1,3})?t?")
_FLAG = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)", re.DOTALL)
_ADDRESS = re.compile(r"(https?|file)://[!-~]+")


def require_well_formed(options: Sequence[tuple[str, str]]) -> None:
    """Refuse what is not of these forms, also in a plan from elsewhere, since it becomes part of commands."""
    for option, value in options:
        if option in _FORMS and not _FORMS[option](value):
            raise InvalidRequest(f"{option}={value} is not {_MEANT[option]}", code=E_CONTESTANT)


def is_place(text: str) -> bool:
    """Whether it names a file or folder of this machine, or a commit, rather than a release."""
    if text.startswith(_GIT):
        return _COMMIT.fullmatch(text) is not None
    is_path = "/" in text or text.endswith(".whl") or text in (".", "..")
    return is_path and "://" not in text and not text.startswith("-") and "\0" not in text


def is_short_place(text: str) -> bool:
    """Whether ``torch@TEXT`` means a place: one that begins as paths do, so that few programs are called like it."""
    return text.startswith(("./", "../", "/", "~/", _GIT)) or text in (".", "..") or text.endswith(".whl")


def is_wheel_or_commit(text: str) -> bool:
    """Whether it cannot be the folder in which a command runs."""
    return text.endswith(".whl") or text.startswith(_GIT)


def is_pinned(text: str) -> bool:
    return _PINNED.fullmatch(text) is not None


def commit_in(text: str) -> tuple[str, str] | None:
    """Split ``git+URL@REVISION`` into both; None for what is not a commit."""
    found = _COMMIT.fullmatch(text)
    return None if found is None else (found["repository"], found["revision"])


def pinned_wheel(package: str, wheel: Path, sha256: str) -> str:
    return f"{package} @ {wheel.as_uri()}#sha256={sha256}"


def pinned_folder(package: str, folder: Path, tree: str) -> str:
    return f"{package} @ {folder.as_uri()}#tree={tree}"


def pinned_commit(package: str, repository: str, commit: str) -> str:
    return f"{package} @ {_GIT}{repository}@{commit}"


def pinned_image(image: str, id_: str) -> str:
    return f"{image}#sha256={id_}"


def image_in(text: str) -> tuple[str, str]:
    """Split an image into its name and the SHA-256 that is its id, which is empty before it is pinned."""
    name, _, id_ = text.partition("#sha256=")
    return name, id_


def goes_on_with_tag(part: str, following: str) -> bool:
    """Whether the colon between these parts of a contestant belongs to the name of its image."""
    is_option = "=" in following.partition("#sha256=")[0]
    return not is_option and _BEFORE_TAG.search(part) is not None


def source_in(requirement: str) -> tuple[str, str] | None:
    """Find what is built first: a folder with its hash, or a repository with its commit. None of what pip installs."""
    found = _PINNED.fullmatch(requirement)
    if found is None or not (found["tree"] or found["commit"]):
        return None
    return (path_of(found["folder"]), found["tree"]) if found["tree"] else (found["repository"], found["commit"])


def wheel_in(requirement: str) -> tuple[Path, str] | None:
    """Find the file of a pinned wheel and its SHA-256; None of others."""
    found = _PINNED.fullmatch(requirement)
    return (Path(path_of(found["wheel"])), found["sha256"]) if found and found["wheel"] else None


def named_in(requirement: str) -> str:
    """Name the package of a pinned requirement, with its extras."""
    return requirement.partition(" @ ")[0].partition("==")[0]


def content_of(requirement: str) -> str:
    """Write a requirement without where it was found, so that equal contents are equal."""
    found = _PINNED.fullmatch(requirement)
    if found is None or found["version"]:
        return requirement
    return f"{found['package']}{found['extras'] or ''} {found['sha256'] or found['tree'] or found['commit']}"


def origin_of(options: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Say where the package came from, for a row; empty where the contestant runs what is installed."""
    given = dict(options)
    found = _PINNED.fullmatch(given.get(WITH, ""))
    pinned = {} if found is None else {name: value for name, value in found.groupdict().items() if value}
    if "wheel" in pinned:
        pinned["wheel"] = Path(path_of(pinned["wheel"])).name
        pinned["version"] = pinned["wheel"].split("-")[1] if pinned["wheel"].count("-") > 1 else ""
    if "folder" in pinned:
        pinned["folder"] = path_of(pinned["folder"])
    others = {name: given[name] for name in (PYTHON, INDEX, FIND_LINKS) if name in given}
    if DOCKER in given:
        name, id_ = image_in(given[DOCKER])
        others |= {"image": name, "image_id": f"sha256:{id_}" if id_ else ""}
    flags = {BUILD: " ".join(flags_in(options))} if BUILD in given else {}
    return {name: without_secrets(value) for name, value in {**pinned, **flags, **others}.items() if value}


def flags_in(options: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Variables that the build gets, each as ``NAME=VALUE``, sorted by name."""
    return tuple(sorted(value for option, value in options if option == BUILD))


def path_of(address: str) -> str:
    return unquote(urlsplit(address).path)


def _is_origin(text: str) -> bool:
    return is_pinned(text) or is_place(text)


def _is_python(text: str) -> bool:
    return _VERSION_OF_PYTHON.fullmatch(text) is not None or ("/" in text and not text.startswith("-"))


def _is_flag(text: str) -> bool:
    return _FLAG.fullmatch(text) is not None and "\0" not in text


def _is_index(text: str) -> bool:
    return _ADDRESS.fullmatch(text) is not None


def _is_place_of_wheels(text: str) -> bool:
    return _is_index(text) or not text.startswith("-")


def _is_image(text: str) -> bool:
    return _IMAGE.fullmatch(text) is not None


_FORMS = {
    WITH: _is_origin,
    PYTHON: _is_python,
    BUILD: _is_flag,
    INDEX: _is_index,
    FIND_LINKS: _is_place_of_wheels,
    DOCKER: _is_image,
}
_MEANT: Mapping[str, str] = {
    WITH: "a release such as numpy==2.1.0, nor ./PACKAGE.whl, ./FOLDER or git+file:///REPOSITORY@COMMIT",
    PYTHON: "a version such as 3.13 or 3.14t, nor the path of an interpreter, such as ./venv/bin/python",
    BUILD: "of the form NAME=VALUE, such as build=CFLAGS=-O3",
    INDEX: "the address of a package index, such as https://HOST/simple",
    FIND_LINKS: "a folder of wheels, nor an address",
    DOCKER: "the name of an image, such as docker=pytorch:2.13",
}
