"""How exact an answer must be, from the model's own sensitivity to rounding; and whether the check would notice.

Inputs and weights are moved by what float32 rounds away from them. A right float32 computation rounds after every
operation as well, so it may be off by a multiple of what that shows. A computation in bfloat16 or TF32 rounds by 65,536
or 8,192 times as much, which is far beyond the multiple. What those may be off by is found from the same differences,
as many times as large as they round more; there the multiple is smaller, since products are summed in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fairlap.engine.measurement import Notice
from fairlap.models.answer_check import output_errors, quantized_errors
from fairlap.models.arrays import Arrays
from fairlap.models.sources.contract import Forward, SourceError
from fairlap.models.spec import UNIT_ROUNDOFF, Tensor, Tolerance
from fairlap.request.work import Precision

ROUNDING = UNIT_ROUNDOFF["fp32"]
MULTIPLE = 64.0  # of a small model, every framework's right answers stayed below a fifth of it
MULTIPLE_OF_FEW_BITS = 8.0
_LEAST = 2.0**-22  # relative: a model whose output hardly depends on rounding still rounds its last operations
_DRAWS = 2
_LOOSE = 1e-2
_COSINE = 0.999
_COSINE_OF_FEW_BITS = 0.99

Outputs = dict[str, npt.NDArray[np.float64]]


class InFloat64(Mapping[str, npt.NDArray[np.generic]]):
    """Converted when they are read, so that one array at a time is held twice. ``seed`` moves each by its rounding."""

    def __init__(self, arrays: Arrays, seed: int | None = None) -> None:
        self._arrays, self._seed = arrays, seed

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        array = self._arrays[name]
        if array.dtype.kind != "f":
            return array
        values = array.astype(np.float64)
        if self._seed is None:
            return values
        rng = np.random.default_rng([self._seed, *name.encode()])
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-values.size // 8)), np.uint8), count=values.size)
        return values * (1 + ROUNDING * (2.0 * bits.reshape(values.shape) - 1))

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def outputs_of(forward: Forward, weights: Arrays, inputs: Arrays, seed: int | None = None) -> Outputs:
    with np.errstate(all="ignore"):
        found = forward(InFloat64(weights, seed), dict(InFloat64(inputs, seed)))
    return {name: np.asarray(array).astype(np.float64) for name, array in found.items()}


def require_usable(outputs: Outputs) -> None:
    """An answer that is not finite cannot be compared."""
    for name, array in outputs.items():
        if not np.isfinite(array).all():
            raise SourceError(
                f"the float64 reference of {name} is not finite for these inputs; give others with --inputs or --range",
                code="E_SOURCE_INPUTS",
            )


def tolerances(
    forward: Forward, weights: Arrays, inputs: Arrays, reference: Outputs
) -> dict[Precision, dict[str, Tolerance]]:
    """By precision and output."""
    moved = [outputs_of(forward, weights, inputs, seed) for seed in range(_DRAWS)]
    found: dict[Precision, dict[str, Tolerance]] = {precision: {} for precision in UNIT_ROUNDOFF}
    for name, exact in reference.items():
        differences = [np.abs(each[name] - exact) for each in moved]
        largest = max((float(each.max(initial=0.0)) for each in differences), default=0.0)
        norm = float(np.linalg.norm(exact))
        share = max((float(np.linalg.norm(each)) for each in differences), default=0.0) / norm if norm else 0.0
        scale = float(np.sqrt(np.mean(np.square(exact)))) if exact.size else 0.0
        for precision, roundoff in UNIT_ROUNDOFF.items():
            exact_one = precision == "fp32"
            times = (MULTIPLE if exact_one else MULTIPLE_OF_FEW_BITS) * roundoff / ROUNDING
            found[precision][name] = Tolerance(
                _COSINE if exact_one else _COSINE_OF_FEW_BITS,
                times * max(largest, _LEAST * scale),
                times * max(share, _LEAST),
            )
    return found


def loose(found: Mapping[str, Tolerance]) -> list[Notice]:
    """``found`` are the tolerances of float32."""
    names = [name for name, tolerance in found.items() if tolerance.relative > _LOOSE]
    if not names:
        return []
    return [
        Notice(
            "W_LOOSE_CHECK",
            f"rounding alone moves {', '.join(names)} by so much that answers may be off by "
            f"{100 * max(found[name].relative for name in names):.2g} % and count as right",
        )
    ]


def unnoticed(
    forward: Forward,
    weights: Arrays,
    inputs: Arrays,
    others: Arrays,
    references: Sequence[Outputs],
    allowed: Mapping[Precision, Mapping[str, Tolerance]],
    tensors: tuple[Tensor, ...],
) -> dict[Precision, tuple[str, ...]]:
    """For each precision, inputs whose values its check would not miss. Raises SourceError if it is all of them in
    float32. The first of the ``references`` belongs to the ``inputs``."""
    silent: dict[Precision, tuple[str, ...]] = {}
    for tensor in tensors:
        same = np.array_equal(inputs[tensor.name], others[tensor.name])
        changed = {**inputs, tensor.name: others[tensor.name]}
        found = references[0] if same else outputs_of(forward, weights, changed)
        for precision in (*allowed, "int8"):
            if _all_right(found, references, allowed.get(precision)):
                silent[precision] = (*silent.get(precision, ()), tensor.name)
    if len(silent.get("fp32", ())) == len(tensors):
        raise SourceError(
            "no input changes the outputs by more than rounding does, so a wrong answer would not be noticed; give "
            "other inputs with --inputs or --range",
            code="E_SOURCE_PROOF",
        )
    return silent


def unnoticed_notice(names: Sequence[str], precision: Precision) -> Notice:
    outputs = "the outputs do not depend" if precision == "fp32" else f"in {precision} the outputs depend too little"
    return Notice(
        "W_INPUT_UNNOTICED",
        f"{outputs} on {', '.join(names)}: a contestant that ignores it would not be noticed",
    )


def _all_right(found: Outputs, references: Sequence[Outputs], allowed: Mapping[str, Tolerance] | None) -> bool:
    """As answers are checked: by tolerances, or where there are none, as those of quantized models."""
    for name, exact in references[0].items():
        if allowed is None:
            usual = np.mean([each[name] for each in references], axis=0)
            error = quantized_errors(name, found[name], exact, usual)
        else:
            error = output_errors(name, found[name], exact, allowed[name])
        if not error.right:
            return False
    return True
