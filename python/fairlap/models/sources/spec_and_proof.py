"""What follows from a model that was opened: its spec, and the proof that answers are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from fairlap.models.checks.fp8_answers import fp8_tolerances
from fairlap.models.sources.allowances import no_narrower, repeat_numbers, widened
from fairlap.models.sources.contract import Opened, Proof, SourceError
from fairlap.models.sources.given_data.sets import Sets
from fairlap.models.sources.inputs import calibration_sets, input_sets
from fairlap.models.sources.onnx_graphs.few_bits import loose_of_few_bits, tolerances_of_few_bits
from fairlap.models.sources.proof import (
    Outputs,
    ill_conditioned,
    loose,
    outputs_of,
    plain_outputs,
    require_no_drawing,
    require_one_size,
    require_usable,
    tolerances,
    unnoticed,
    unnoticed_notice,
)
from fairlap.models.spec import Constant, Spec, Tensor, Weight
from fairlap.request.fields.source import Source


def proof_of(
    source: Source,
    found: Opened,
    given: Sets,
    seeds: Mapping[str, int],
    require: Callable[[Outputs], None] = lambda _: None,
    *,
    fp8: bool = False,
) -> Proof:
    """Compute the answers to inputs that are the user's or drawn; ``require`` is called with the first of them."""
    example = None if source.ranges else found.example  # else what is asked for would not be drawn
    sets = input_sets(found.inputs, given, example, seeds)
    if source.shared:
        _share_beginnings(sets, found.inputs[0].name, source.shared)
    calibrating = calibration_sets(found.inputs, given, example, seeds, batch_of(found))
    first, second = list(sets)[:2]
    references = {which: outputs_of(found.forward, found.weights, own) for which, own in sets.items()}
    for outputs in references.values():
        require_usable(outputs)
    require_one_size(references.values())
    exact = references[first]
    require(exact)
    require_no_drawing(exact, outputs_of(found.forward, found.weights, sets[first]))
    if found.right_answers is not None:
        allowed = tolerances_of_few_bits(found.right_answers, found.weights, sets[first], exact)
        notices = loose_of_few_bits(allowed["fp32"])
    else:
        plain = plain_outputs(found.in_float32, found.weights, sets[first])
        allowed = tolerances(found.forward, found.weights, sets[first], exact, plain)
        # Of some models other inputs show more, such as of one that divides by what a few of them make.
        allowed = no_narrower(
            allowed, tolerances(found.forward, found.weights, sets[second], references[second], draws=1)
        )
        for which in list(sets)[: max(1, len(given))]:  # others have the same values, in another order
            if given or repeat_numbers(sets[which]):
                allowed = widened(allowed, found, sets[which], references[which])
        if fp8 and "fp8" in found.precisions:
            answered = partial(outputs_of, found.forward)
            allowed["fp8"] = fp8_tolerances(answered, found.weights, [sets[first]], [exact])
        notices = ill_conditioned(exact, plain, allowed["fp32"]) + loose(allowed["fp32"])
    silent = unnoticed(
        found.forward, found.weights, sets[first], sets[second], list(references.values()), allowed, found.inputs
    )
    notices += [unnoticed_notice(silent["fp32"], "fp32", len(found.inputs))] if "fp32" in silent else []
    return Proof(sets, references, allowed, tuple(notices), silent, calibrating)


def _share_beginnings(sets: Mapping[str, dict[str, np.ndarray]], name: str, tokens: int) -> None:
    """Give every prompt the first tokens of the very first one."""
    beginning = next(iter(sets.values()))[name][:1, :tokens].copy()
    for arrays in sets.values():
        rest = arrays[name][:, tokens:]
        arrays[name] = np.concatenate([beginning.repeat(len(rest), axis=0), rest], axis=1)


def spec_of(source: Source, kind: str, found: Opened, exact: Outputs) -> Spec:
    """``kind`` is the title of the kind of source, ``exact`` an answer."""
    weights = tuple(Weight(name, array.shape, Constant(0.0)) for name, array in found.weights.items())
    multiplied = found.multiplications
    return Spec(
        name=source.name,
        task=f"a user's model ({kind})",
        inputs=found.inputs,
        outputs=tuple(
            Tensor(name, exact[name].shape, Constant(0.0), found.output_types[name]) for name in found.outputs
        ),
        weights=weights,
        parameters=sum(array.size for array in found.weights.values()),
        gmacs_per_item=None if multiplied is None else multiplied / 1e9 / batch_of(found),
        published="counted in the model",
        uncounted=found.uncounted,
        modes=found.modes,
        precisions=found.precisions,
        default_batch=batch_of(found),
        continuation=found.continuation,
        read_weights=found.read_weights,
    )


def batch_of(found: Opened) -> int:
    """Find the batch, a size that all inputs but scalars have the same; else a call is one item."""
    if found.items is not None:
        return found.items
    sizes = {tensor.sized(1)[found.batch_axes.get(tensor.name, 0)] for tensor in found.inputs if tensor.shape}
    return sizes.pop() if len(sizes) == 1 else 1


def require_float32(found: Opened) -> None:
    """Contestants are asked for float32, and their weights are compared in it."""
    others = {str(array.dtype) for array in found.weights.values()} - {"float32"}
    if others:
        raise SourceError(f"the model has weights of {', '.join(sorted(others))}; only models in float32 are raced")
