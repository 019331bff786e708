"""Inputs from a function in the user's own script."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from fairlap.errors import described
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.sets import CODE, Sets

_MOST_SETS = 40


@cache
def sets_from_script(script: Path, function: str, folder: str) -> Sets:
    """Call a function that returns inputs by name, or several such sets.

    It runs once, before the model is read, and in a separate process: threads that it starts would stay outside of the
    sandbox, and a model could let them act.
    """
    with tempfile.TemporaryFile() as handed_over:
        child = os.fork()
        if child == 0:
            _hand_over(handed_over, script, function, folder)
        _, status = os.waitpid(child, 0)
        handed_over.seek(0)
        if status:
            why = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {status >> 8}"
            raise SourceError(f"{script}:{function} ended its process: {why}", code=CODE)
        outcome: Sets | str = pickle.load(handed_over)  # of the user's own function
    if isinstance(outcome, str):
        raise SourceError(outcome, code=CODE)
    return outcome


def _hand_over(to: IO[bytes], script: Path, function: str, folder: str) -> NoReturn:
    """Write the sets, or why there are none."""
    outcome: Sets | str
    try:
        outcome = _sets_of(script, function, folder)
    except SourceError as error:
        outcome = str(error)
    except (Exception, SystemExit) as error:
        outcome = f"{script}:{function} raised {described(error)}"
    try:
        pickle.dump(outcome, to)
        to.flush()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    finally:
        os._exit(1)


def _sets_of(script: Path, function: str, folder: str) -> Sets:
    if not script.is_file():
        raise SourceError(f"{script} does not exist", code=CODE)
    sys.path[:0] = [str(script.parent), folder]
    described_as = importlib.util.spec_from_file_location(script.stem, script)
    assert described_as is not None
    assert described_as.loader is not None
    module = importlib.util.module_from_spec(described_as)
    described_as.loader.exec_module(module)
    result = getattr(module, function)()
    if not isinstance(result, Iterable):
        raise SourceError(f"{script}:{function} gives {type(result).__name__}, not arrays by name", code=CODE)
    sets: list[dict[str, np.ndarray]] = []
    for own in [result] if isinstance(result, Mapping) else result:
        if not isinstance(own, Mapping):
            raise SourceError(f"{script}:{function} gives {type(own).__name__}, not arrays by name", code=CODE)
        sets.append({str(name): array_of(value) for name, value in own.items()})
        if len(sets) == _MOST_SETS:
            break
    return sets


def array_of(value: Any) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)
