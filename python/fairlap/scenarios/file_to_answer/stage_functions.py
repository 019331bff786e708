"""The user's functions around a model: imported, called, and checked for what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import described
from fairlap.frameworks.contract_parts.called_programs import ContestantFailed
from fairlap.models.sources.callables.functions import function_in
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.script import array_of
from fairlap.models.spec import Spec
from fairlap.request.fields.data.stages import Stages

Function = Callable[[Any], Any]


class StageFailed(ContestantFailed):
    """A function of ``--before`` or ``--after`` cannot be imported, raised, or returned something else."""

    code = reported = "E_STAGE"


class InputForm(msgspec.Struct, frozen=True):
    """What an input of the model must be."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def forms_of(spec: Spec, batch: int) -> tuple[InputForm, ...]:
    return tuple(InputForm(tensor.name, tuple(tensor.sized(batch)), str(tensor.dtype)) for tensor in spec.inputs)


class StageFunctions:
    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self.before = [_function(stages.folder, name) for name in stages.before]
        self.after = [_function(stages.folder, name) for name in stages.after]
        self._before_labels = stages.labels[: len(self.before)]
        self._after_labels = stages.labels[len(self.before) + 1 :]

    def inputs_of(self, file: Path, look: Callable[[str, Any], object] = lambda _label, _value: None) -> Any:
        """Call those before the model; ``look`` sees what each returned."""
        return _called(self.before, self._before_labels, file, file.name, look)

    def answer_of(self, outputs: Mapping[str, np.ndarray], item: str) -> Any:
        """Call those after the model; none may write to its outputs, which a framework may still use."""
        own = {name: (array, np.asarray(array).tobytes()) for name, array in outputs.items()}

        def require_unchanged(label: str, _value: Any) -> None:
            for name, (array, before) in own.items():
                if np.asarray(array).tobytes() != before:
                    raise StageFailed(f"{label} writes to {name}, an output of the model, for {item}; let it copy that")

        return _called(self.after, self._after_labels, outputs, item, require_unchanged)

    def checked(self, value: Any, forms: Sequence[InputForm], item: str) -> dict[str, np.ndarray]:
        """Require of what the last function before the model returned that it is the model's inputs."""
        label, names = self._before_labels[-1], [form.name for form in forms]
        if not isinstance(value, Mapping):
            if len(forms) != 1:
                raise StageFailed(
                    f"{label} returned a {type(value).__name__} for {item}; return a dict with the model's inputs "
                    f"{', '.join(names)}"
                )
            value = {names[0]: value}
        if set(value) != set(names):
            got = ", ".join(map(str, value)) or "nothing"
            raise StageFailed(f"{label} returned {got} for {item}; the model's inputs are {', '.join(names)}")
        return {form.name: _fitting(value[form.name], form, label, item) for form in forms}


def _fitting(value: Any, form: InputForm, label: str, item: str) -> np.ndarray:
    try:
        array = array_of(value)
    except Exception as error:  # of somebody else's type
        raise StageFailed(f"{label} returned no array for {item}: {described(error)}") from None
    if (array.shape, str(array.dtype)) != (form.shape, form.dtype):
        raise StageFailed(
            f"{label} returned {array.dtype} {list(array.shape)} for {item}, and the model's input {form.name} is "
            f"{form.dtype} {list(form.shape)}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise StageFailed(f"{label} returned values that are not finite for {item}")
    return np.array(array, order="C")


def _called(
    functions: Sequence[Function],
    labels: Sequence[str],
    value: Any,
    item: str,
    look: Callable[[str, Any], object] = lambda _label, _value: None,
) -> Any:
    for label, function in zip(labels, functions, strict=True):
        try:
            value = function(value)
        except (Exception, SystemExit) as error:
            raise StageFailed(f"{label} raised {described(error)} for {item}") from error
        look(label, value)
    return value


def _function(folder: str, name: str) -> Function:
    try:
        return function_in(folder, name)
    except SourceError as error:
        raise StageFailed(str(error)) from error
