"""Run planted mistakes in a worker, and keep what a user would have seen."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlap.scenarios.mistakes import ways
from fairlap.scenarios.mistakes.catalogue import mistake_named
from fairlap.scenarios.mistakes.mistakes_messages import MistakeSeen, PlantMistake

if TYPE_CHECKING:
    from types import TracebackType

_MOST_CHARACTERS = 100_000
_STDERR = 2


def seen(request: PlantMistake) -> MistakeSeen:
    way, mistake = ways.WAYS[request.way], mistake_named(request.mistake)
    function = mistake.function(way)
    assert function is not None
    way_given = () if way.given is None else (way.given(),)
    way.before_each()
    with _standard_error() as read_printed, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        began = time.perf_counter()
        raised: Exception | None = None
        answer = None
        try:
            answer = _read(function(*way_given))
        except Exception as error:
            raised = error
        seconds = time.perf_counter() - began
        printed = read_printed()
    if raised is not None:
        return MistakeSeen(
            way.version(), seconds, type(raised).__name__, _messages(raised), _traceback(raised, mistake.file)
        )
    text = "".join(map(_warning, warned)) + printed
    return MistakeSeen(way.version(), seconds, warned=text[:_MOST_CHARACTERS], right=_is_right(answer, mistake.meant))


def _read(answer: Any) -> Any:
    """Convert it, as printing a loss does: what computes in the background raises here."""
    answer = answer.detach() if hasattr(answer, "detach") else answer
    return None if answer is None else np.asarray(answer, np.float64)


def _is_right(answer: Any, meant: Any) -> bool:
    if meant is None or answer is None:
        return False
    return np.shape(answer) == np.shape(meant) and bool(np.allclose(answer, meant))


def _messages(error: BaseException) -> str:
    """Join the texts of the exceptions that Python prints, the last one first."""
    texts = []
    following: BaseException | None = error
    while following is not None:
        texts += [str(following), *getattr(following, "__notes__", ())]
        hidden = following.__suppress_context__
        following = following.__cause__ or (None if hidden else following.__context__)
    return "\n".join(texts)[:_MOST_CHARACTERS]


def _traceback(error: BaseException, file: str) -> str:
    """Format it as Python prints it, without what called the user's code, and what it calls of ours."""
    frame: TracebackType | None = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != file:
        frame = frame.tb_next
    printed = traceback.TracebackException.from_exception(error.with_traceback(frame))
    printed.stack = traceback.StackSummary.from_list([each for each in printed.stack if each.filename != ways.__file__])
    return "".join(printed.format())[-_MOST_CHARACTERS:]


def _warning(warned: warnings.WarningMessage) -> str:
    return warnings.formatwarning(warned.message, warned.category, warned.filename, warned.lineno, line="")


@contextmanager
def _standard_error() -> Iterator[Callable[[], str]]:
    """Catch what is printed there, also by native code."""
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    with tempfile.TemporaryFile() as file:

        def read() -> str:
            sys.stderr.flush()
            file.seek(0)
            return file.read(_MOST_CHARACTERS).decode("utf-8", "replace")

        os.dup2(file.fileno(), _STDERR)
        try:
            yield read
        finally:
            sys.stderr.flush()
            os.dup2(kept, _STDERR)
            os.close(kept)
