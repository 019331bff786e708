"""Callables: a reference of the user, or the first contestant, and a function that draws the arguments of a call.

They are a model without weights, whose inputs are the arguments and whose outputs are the answers. The user's functions
run here without trust, as ``python_function`` does it: the user named them on the command line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.models.sources.callables.drawing import Drawing
from fairlap.models.sources.callables.functions import function_in, function_of_checkout, parameters_of
from fairlap.models.sources.callables.reference import Form, Reference
from fairlap.models.sources.callables.truth import TruthOfCallables
from fairlap.models.sources.contract import Bundle, Opened, Proof, Route, SourceError, SourceKind, known_dtype
from fairlap.request.fields.source import PREFIX_OF_CALLABLES, Source, is_callable_name

_FRAMEWORK = "python"
_FORM = "form.json"
_SEED_OF_FORM = 5000


class PythonCallables(SourceKind):
    title = "Python callables"
    no_gradients = "callables have no loss"

    @classmethod
    def recognises(cls, text: str) -> bool:
        return text.startswith(PREFIX_OF_CALLABLES) and is_callable_name(text.removeprefix(PREFIX_OF_CALLABLES))

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        return ()

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        if not is_callable_name(source.inputs):
            raise SourceError(
                f"{source.shown} is a reference; give it as `fairlap compare callable --reference {source.shown} "
                "--inputs MODULE:CALLABLE`",
                code="E_REFERENCE",
            )
        draw = function_in(source.folder, source.inputs)
        if source.checkout:
            function = function_of_checkout(source.checkout, source.shown, source.folder)
        else:
            function = function_in(source.folder, source.shown)
        drawing = Drawing(source, draw, parameters_of(function))
        arguments, stored = drawing.drawn(_SEED_OF_FORM)
        reference = Reference(source.shown, function, arguments)
        form, types = reference.form(stored)
        (folder / _FORM).write_bytes(msgspec.json.encode(form))
        truth = TruthOfCallables(reference, form, types)

        def proof(seeds: Mapping[str, int]) -> Proof:
            written = [name for name in form.changed if name not in form.restored]
            sets = drawing.sets(arguments, seeds, written)
            found = truth.found(sets)
            further = drawing.further_sets(arguments, min(seeds.values()))
            return Proof(sets, found.references, {"fp32": found.tolerances}, found.notices, {}, further)

        return Opened(
            inputs=arguments.tensors(),
            outputs=tuple(types),
            output_types={name: known_dtype(name, each) for name, each in types.items()},
            weights={},
            forward=lambda _, inputs: reference.answers(form, reference.called(inputs, wide=True)[0]),
            routes={_FRAMEWORK: Route(holds_weights=False)},
            reference=f"{source.shown}, in float64 where it can be evaluated in it",
            dims=tuple(drawing.sizes),
            notices=_restoring(form),
            proof=proof,
            precisions=("fp32",),
            items=1,
        )

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> Form:
        return msgspec.json.decode((folder / _FORM).read_bytes(), type=Form)


def _restoring(form: Form) -> tuple[Notice, ...]:
    if not form.restored:
        return ()
    tensors = [tensor for tensor in form.arguments.tensors() if tensor.name in form.restored]
    size = quantity_text.size(sum(np.dtype(each.dtype).itemsize * math.prod(each.sized(1)) for each in tensors))
    return (
        Notice(
            "W_ARGUMENTS_RESTORED",
            f"calls read and change {', '.join(form.restored)}, so {size} are copied back at the start of each timed "
            "call, and that time counts",
        ),
    )


KIND = PythonCallables
