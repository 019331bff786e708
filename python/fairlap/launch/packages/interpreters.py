"""Python interpreters of contestants: another version, or that of an environment of the user, which is only read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairlap.errors import FairlapError

OLDEST = (3, 11)  # that fairlap runs in, and so its workers
_ANSWERS_WITHIN_S = 60.0
_OF_ENVIRONMENTS = "bin/python"
_OF_CONDA = "conda-meta"
# Python 2 understands it too, so that its version can be named.
_QUESTIONS = """\
import json, sys, sysconfig
try:
    import ensurepip, venv
    makes = True
except Exception:
    makes = False
try:
    import site
    sites = site.getsitepackages()
except Exception:
    sites = []
print(json.dumps({
    "version": list(sys.version_info[:3]),
    "implementation": getattr(getattr(sys, "implementation", None), "name", "cpython"),
    "prefix": [sys.prefix, getattr(sys, "base_prefix", sys.prefix)],
    "sites": sites,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "makes_environments": makes,
}))
"""


class NoInterpreter(FairlapError):
    """The Python that a contestant names is not here, is too old, or makes no environments."""

    code = "E_INTERPRETER"


@dataclass(frozen=True)
class Interpreter:
    path: str
    version: tuple[int, int, int]
    base_prefix: str
    sites: tuple[str, ...] = ()  # folders of its packages, where these are used; it was named by its path
    free_threaded: bool = False

    @property
    def is_alike(self) -> bool:
        """Whether native modules of this process can be imported in it."""
        own = own_interpreter()
        return (self.version[:2], self.free_threaded) == (own.version[:2], own.free_threaded)

    @property
    def name(self) -> str:
        return ".".join(map(str, self.version)) + ("t" if self.free_threaded else "")

    @property
    def conda_prefix(self) -> str:
        """The conda environment that it is of; empty where it is of none."""
        prefix = Path(self.path).parent.parent
        return str(prefix) if self.sites and (prefix / _OF_CONDA).is_dir() else ""

    @property
    def folder(self) -> str:
        """The name that the folder of its modules has below ``lib``."""
        return f"python{self.version[0]}.{self.version[1]}{'t' if self.free_threaded else ''}"


def own_interpreter() -> Interpreter:
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return Interpreter(sys.executable, sys.version_info[:3], sys.base_prefix, free_threaded=free_threaded)


def interpreter_named(text: str) -> Interpreter:
    """Find the interpreter of a version, 3.13 or the free-threaded 3.14t, or at a path; the own one without a text."""
    if not text:
        return own_interpreter()
    if "/" in text:
        return _required(text, Path(text).expanduser().absolute())
    free_threaded, own = text.endswith("t"), own_interpreter()
    wanted = tuple(map(int, text.removesuffix("t").split(".")))
    if (own.version[: len(wanted)], own.free_threaded) == (wanted, free_threaded):
        return own
    _require_not_too_old(text, wanted)
    for folder in os.get_exec_path():
        path = Path(folder) / f"python{wanted[0]}.{wanted[1]}{'t' if free_threaded else ''}"
        answer = _answer_of(str(path)) if path.is_file() else None
        if answer is None or bool(answer.get("free_threaded")) != free_threaded:
            continue
        if tuple(answer["version"][: len(wanted)]) == wanted:
            return replace(_interpreter(text, path, answer), sites=())
    raise NoInterpreter(f"python={text}: no folder of PATH has a Python {text}; install it, or give its path")


def _required(text: str, path: Path) -> Interpreter:
    if path.is_dir():  # an environment
        path = path / _OF_ENVIRONMENTS
        if not path.is_file():
            raise NoInterpreter(f"python={text} is a folder without {_OF_ENVIRONMENTS}; name an interpreter")
    if not path.is_file():
        raise NoInterpreter(f"python={text}: there is no such file")
    answer = _answer_of(str(path))
    if answer is None:
        raise NoInterpreter(f"python={text} is not a Python interpreter that runs here")
    return _interpreter(text, path, answer)


def _interpreter(text: str, path: Path, answer: dict[str, Any]) -> Interpreter:
    major, minor, patch = map(int, answer["version"])
    _require_not_too_old(text, (major, minor))
    if answer["implementation"] != "cpython":
        raise NoInterpreter(f"python={text} is {answer['implementation']}; fairlap's workers run in CPython")
    if not answer["makes_environments"]:
        raise NoInterpreter(
            f"python={text} lacks venv or ensurepip, which bring pip into an environment; install them for it, such as "
            f"with the package python{major}.{minor}-venv"
        )
    sites = tuple(dict.fromkeys(answer["sites"]))
    free_threaded = bool(answer.get("free_threaded"))
    return Interpreter(str(path), (major, minor, patch), answer["prefix"][1], sites, free_threaded)


def _require_not_too_old(text: str, version: tuple[int, ...]) -> None:
    if version[:2] < OLDEST:
        named, oldest = (".".join(map(str, each)) for each in (version, OLDEST))
        raise NoInterpreter(f"python={text} is Python {named}; contestants need {oldest} or newer")


def lacks_module(python: Path, module: str, variables: Mapping[str, str]) -> bool:
    """Ask an interpreter whether it finds no such module; False where it does not answer."""
    question = f"import sys; from importlib.util import find_spec; sys.exit(3 if find_spec({module!r}) is None else 0)"
    try:
        done = subprocess.run(
            [python, "-P", "-c", question],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWERS_WITHIN_S, check=False,
            env={**os.environ, **variables},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 3


@lru_cache(maxsize=64)
def _answer_of(path: str) -> dict[str, Any] | None:
    """Ask it about itself; it writes no bytecode, and reads no variables of Python. None where it does not answer."""
    try:
        done = subprocess.run(
            [path, "-E", "-s", "-B", "-c", _QUESTIONS],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWERS_WITHIN_S, cwd="/", check=False,
        )  # fmt: skip
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return answer if isinstance(answer, dict) and done.returncode == 0 else None
