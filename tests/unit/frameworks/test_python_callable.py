"""Plain callables race like frameworks: called as often as measured, checked to have been called."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.programs.python_callable import PythonCallable
from fairlap.launch.runners import require_known
from fairlap.models.registry import find
from fairlap.models.workload import Workload
from fairlap.request.names import Contestants


def work(model: str = "callable") -> Workload:
    found = find(model)
    return Workload(found.spec, found.package, 1, "infer", "fp32", {}, {"ticket": np.ones((1, 4), np.float32)})


def phase(name: str) -> nullcontext[None]:
    return nullcontext()


def test_it_calls_what_was_named_and_gives_the_ticket_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counted_kernel.py").write_text("calls = []\ndef run(): calls.append(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = PythonCallable().prepare(work(), Settings(1, options={"call": "counted_kernel.run"}), phase)
    call = made.bind(work().inputs)
    [answer] = made.outputs(call()).values()
    np.testing.assert_array_equal(answer, np.ones((1, 4)))
    call()
    assert len(sys.modules["counted_kernel"].calls) == 2


def test_an_async_function_is_refused_since_a_call_runs_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "async_kernel.py").write_text("async def run(): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Unsupported, match=r"async_kernel.run"):
        PythonCallable().prepare(work(), Settings(1, options={"call": "async_kernel.run"}), phase)


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        ("mlp", {"call": "time.time"}, "not models"),
        ("callable", {}, "name what to call"),
        ("callable", {"call": "time"}, "MODULE.CALLABLE"),
        ("callable", {"cal": "time.time"}, "python has no option 'cal'; did you mean call"),
    ],
)
def test_what_it_cannot_do_is_refused(model: str, options: dict[str, str], reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        PythonCallable().prepare(work(model), Settings(1, options=options), phase)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_module.run", "cannot import no_such_module"),
        ("time.tim", "time has no 'tim'"),
    ],
)
def test_what_cannot_be_called_is_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        PythonCallable().prepare(work(), Settings(1, options={"call": name}), phase)


def test_it_has_no_versions() -> None:
    with pytest.raises(InvalidRequest, match="versions"):
        require_known(Contestants("python==3.12:call=time.time"))
