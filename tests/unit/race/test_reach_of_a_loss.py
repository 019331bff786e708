"""A plan from elsewhere lists the code that computes its loss, and a function that returns a flax module has a hint."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.kinds.python_function import PythonFunction
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.planning.plan_reach import reach_of
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest


@pytest.mark.parametrize(("loss", "listed"), [("cross_entropy", []), ("own:loss", ["loss own:loss"])])
def test_another_loss_is_another_reach(loss: str, listed: list[str]) -> None:
    plan = plan_of(RaceRequest(models=("mlp",), contestants=Contestants("torch"), blocks=1))
    source = Source("net:build", "net:build", loss=loss)
    works = [msgspec.structs.replace(work, source=source) for work in plan.works]
    reached = reach_of(msgspec.structs.replace(plan, works=tuple(works)))
    assert [line for line in reached if line.startswith("loss ")] == listed


def test_a_module_of_flax_is_raced_as_a_function(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("builds_flax")
    net = type("Net", (), {"__module__": "flax.linen.module"})
    module.build = lambda: (net(), ())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "builds_flax", module)
    source = Source("builds_flax:build", "builds_flax:build", str(tmp_path))
    with pytest.raises(SourceError) as refused:
        PythonFunction.open(source, tmp_path)
    assert "module.apply" in str(refused.value)
