"""Callables of a test, opened with a reference and a function that draws, in this process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
from fairlap.errors import FairlapError
from fairlap.frameworks.adapter_parts.calls_of_form import CallsOfForm
from fairlap.frameworks.contract import Contestant
from fairlap.models.sources.bundle import implementation_in
from fairlap.models.sources.callables.functions import function_in
from fairlap.race.equal_work import answers
from fairlap.race.equal_work.materials import IN_TURN, UNSEEN, Materials
from fairlap.request.fields.source import PREFIX_OF_CALLABLES, Source, dims_in
from onnx_files import materials_of


def source_of_callables(folder: Path, code: str, reference: str = "ref", dims: str = "") -> Source:
    module = f"own_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text("import numpy as np\n" + dedent(code))
    path = f"{PREFIX_OF_CALLABLES}{module}:{reference}"
    return Source("callable", path, str(folder), dims=dims_in(dims), inputs=f"{module}:draw")


def answer_of(contestant: Contestant, call: Callable[[], Any]) -> dict[str, np.ndarray]:
    """Call it, and read its answer as a worker does."""
    assert contestant.outputs_of is not None
    return contestant.outputs_of(call, call())


class OpenedCallables:
    def __init__(self, folder: Path, code: str, **given: str) -> None:
        self.source = source_of_callables(folder, code, **given)
        self.materials: Materials = materials_of(self.source, folder)
        self.function = partial(function_in, str(folder))

    @property
    def codes(self) -> list[str]:
        """Of what is to be known of the proof."""
        return [notice.code for notice in self.materials.notices]

    def contestant(self, name: str) -> Contestant:
        module = self.source.inputs.partition(":")[0]
        form = implementation_in(self.materials.folder, "python")
        return CallsOfForm(form, self.function(f"{module}:{name}")).contestant({})

    def answer(self, name: str, which: str = "inputs") -> dict[str, np.ndarray]:
        contestant = self.contestant(name)
        return answer_of(contestant, contestant.bind(self.materials.workload(which).inputs))

    def wrong_on(self, name: str) -> list[str]:
        """On which sets a contestant, asked in the order of a race, answers wrong: or the code of what it raises."""
        contestant = self.contestant(name)
        wrong = []
        for which in (*IN_TURN, *UNSEEN):
            call: Callable[[], Any] = contestant.bind(self.materials.workload(which).inputs)
            try:
                got = answer_of(contestant, call)
                assert contestant.inputs_read is not None
                contestant.inputs_read()
                errors = answers.array_errors(self.materials, got, which, "before")
                answers.require_right_on(self.materials, got, which, errors, {}, "a call")
            except FairlapError as error:
                wrong.append(error.code)
            else:
                wrong.append("")
        return wrong
