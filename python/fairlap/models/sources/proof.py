"""How exact an answer must be, from the model's own sensitivity to rounding; and whether the check would notice.

Inputs and weights are moved by what float32 rounds away from them. A right float32 computation rounds after every
operation as well, so it may be off by a multiple of what that shows. A computation in bfloat16 or TF32 rounds by 65,536
or 8,192 times as much, which is far beyond the multiple. What those may be off by is found from the same differences,
as many times as large as they round more; there the multiple is smaller, since products are summed in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fairlap.engine.measurement import Notice
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import output_errors, quantized_errors
from fairlap.models.sources.contract import Forward, SourceError
from fairlap.models.spec import UNIT_ROUNDOFF, Tensor, Tolerance
from fairlap.request.work import Precision

ROUNDING = UNIT_ROUNDOFF["fp32"]
MULTIPLE = 64.0  # of a small model, every framework's right answers stayed below a fifth of it
MULTIPLE_OF_FEW_BITS = 8.0
_PLAIN = 1 / 16
"""Of the error of a plain float32 computation: others may be off by MULTIPLE times as much, so four times."""
_LEAST = 2.0**-22  # relative: a model whose output hardly depends on rounding still rounds its last operations
_DRAWS = 2
_MOVED_AT_ONCE = 2**20  # numbers, a multiple of eight
_LOOSE = 1e-2
_SAME = 1e-9
_COSINE = 0.999
_LEAST_COSINE = 0.9
_COSINE_OF_FEW_BITS = 0.99

Outputs = dict[str, npt.NDArray[np.float64]]


class DrawsNumbers(SourceError):
    """A model whose answers are another each time cannot be compared with anything."""

    code = "E_SOURCE_RANDOM"


class InFloat64(Mapping[str, npt.NDArray[np.generic]]):
    """Converted when they are read, so that one array at a time is held twice. ``seed`` moves each by its rounding."""

    def __init__(self, arrays: Arrays, seed: int | None = None) -> None:
        self._arrays, self._seed = arrays, seed

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        array = self._arrays[name]
        if array.dtype.kind != "f":
            return array
        values = array.astype(np.float64, order="C")
        if self._seed is not None:
            _move(values.reshape(-1), np.random.default_rng([self._seed, *name.encode()]))
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def _move(values: npt.NDArray[np.float64], rng: np.random.Generator) -> None:
    """Move each by its rounding, up or down, in pieces that need little memory beside them."""
    drawn = np.frombuffer(rng.bytes(-(-values.size // 8)), np.uint8)
    for first in range(0, values.size, _MOVED_AT_ONCE):
        some = values[first : first + _MOVED_AT_ONCE]
        bits = np.unpackbits(drawn[first // 8 : -(-(first + some.size) // 8)], count=some.size)
        some *= 1 + ROUNDING * (2.0 * bits - 1)


def outputs_of(forward: Forward, weights: Arrays, inputs: Arrays, seed: int | None = None) -> Outputs:
    with np.errstate(all="ignore"):
        found = forward(InFloat64(weights, seed), dict(InFloat64(inputs, seed)))
    return {name: np.asarray(array).astype(np.float64) for name, array in found.items()}


def require_usable(outputs: Outputs) -> None:
    """Refuse an answer that is not finite, which cannot be compared."""
    for name, array in outputs.items():
        if not np.isfinite(array).all():
            raise SourceError(
                f"the float64 reference of {name} is not finite for these inputs; give others with --inputs or --range",
                code="E_SOURCE_INPUTS",
            )


def require_one_size(references: Iterable[Outputs]) -> None:
    """Refuse outputs whose sizes depend on the values of the inputs: answers to two inputs could not be compared."""
    first, *others = references
    for name, array in first.items():
        other = next((each[name] for each in others if each[name].shape != array.shape), None)
        if other is not None:
            sizes = " and ".join("x".join(map(str, each.shape)) or "one number" for each in (array, other))
            raise SourceError(
                f"the size of {name} depends on the values of the inputs ({sizes} for two of them), and fairlap "
                "compares answers of one size; cut the model before it",
            )


def tolerances(
    forward: Forward,
    weights: Arrays,
    inputs: Arrays,
    reference: Outputs,
    plain: Outputs | None = None,
    *,
    draws: int = _DRAWS,
) -> dict[Precision, dict[str, Tolerance]]:
    """Compute the tolerances by precision and output.

    ``plain`` are the answers of a right computation in float32: where values cancel, it is off by far more than moved
    inputs and weights show, and so is every other.
    """
    moved = [outputs_of(forward, weights, inputs, seed) for seed in range(draws)]
    for outputs in moved:
        require_usable(outputs)
    found: dict[Precision, dict[str, Tolerance]] = {precision: {} for precision in UNIT_ROUNDOFF}
    for name, exact in reference.items():
        differences = [np.abs(each[name] - exact) for each in moved]
        differences += [] if plain is None else [_PLAIN * np.abs(plain[name] - exact)]
        largest = max((float(each.max(initial=0.0)) for each in differences), default=0.0)
        norm = float(np.linalg.norm(exact))
        share = max((float(np.linalg.norm(each)) for each in differences), default=0.0) / norm if norm else 0.0
        scale = float(np.sqrt(np.mean(np.square(exact)))) if exact.size else 0.0
        for precision, roundoff in UNIT_ROUNDOFF.items():
            exact_one = precision == "fp32"
            times = (MULTIPLE if exact_one else MULTIPLE_OF_FEW_BITS) * roundoff / ROUNDING
            relative = times * max(share, _LEAST)
            found[precision][name] = Tolerance(
                _cosine(relative) if exact_one else _COSINE_OF_FEW_BITS,
                times * max(largest, _LEAST * scale),
                relative,
            )
    return found


def _cosine(relative: float) -> float:
    """Compute the cosine of an answer that is off by as much as it may be, in a direction of its own.

    Of one that may be off by all of itself any will do: ONNX Runtime's sigmoid is 0 where the exact one is 1e-9.
    """
    return max(min(_COSINE, 1 - relative**2 / 2), _LEAST_COSINE) if relative < 1 else -1.0


def require_no_drawing(outputs: Outputs, again: Outputs) -> None:
    """Both are of the same inputs."""
    for name, array in outputs.items():
        off = np.abs(again[name] - array).max(initial=0.0)
        if not off <= _SAME * np.abs(array).max(initial=0.0):
            raise DrawsNumbers(
                f"the model draws random numbers, or keeps a state: evaluated twice on the same inputs, {name} differs "
                f"by {off:.2g}; make it give the same answer each time, or take the random numbers as an input"
            )


def plain_outputs(forward: Forward | None, weights: Arrays, inputs: Arrays) -> Outputs | None:
    """None where there is no computation in float32, or it is not finite."""
    if forward is None:
        return None
    with np.errstate(all="ignore"):
        found = forward(weights, inputs)
    outputs = {name: np.asarray(array).astype(np.float64) for name, array in found.items()}
    return outputs if all(np.isfinite(array).all() for array in outputs.values()) else None


def ill_conditioned(reference: Outputs, plain: Outputs | None, allowed: Mapping[str, Tolerance]) -> list[Notice]:
    """Warn where rounding inside of the model moves its outputs by far more than moved inputs and weights do.

    Then the error of the plain computation determined the tolerance.
    """
    if plain is None:
        return []
    off = {}
    for name, exact in reference.items():
        largest = float(np.abs(plain[name] - exact).max(initial=0.0))
        if largest and MULTIPLE * _PLAIN * largest >= allowed[name].absolute:
            off[name] = largest
    if not off:
        return []
    worst = max(off, key=lambda name: off[name])
    return [
        Notice(
            "W_ILL_CONDITIONED",
            f"on these inputs a float32 computation may be off by {off[worst]:.1e} in {worst}, since values cancel "
            "inside of the model or a sigmoid is nearly 0: wider bounds hold for all; inputs such as the model was "
            "made for may be better: --range, --inputs",
        )
    ]


def loose(found: Mapping[str, Tolerance]) -> list[Notice]:
    """``found`` are the tolerances of float32."""
    names = [name for name, tolerance in found.items() if tolerance.relative > _LOOSE]
    if not names:
        return []
    return [
        Notice(
            "W_LOOSE_CHECK",
            f"rounding alone moves {', '.join(names)} by so much that answers may be off by "
            f"{100 * max(found[name].relative for name in names):.2g} % and count as right; other inputs, given with "
            "--range or --inputs, may be better",
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
    """Find, for each precision, inputs whose values its check would not miss.

    The first of the ``references`` belongs to the ``inputs``.
    """
    silent: dict[Precision, tuple[str, ...]] = {}
    for tensor in tensors:
        same = np.array_equal(inputs[tensor.name], others[tensor.name])
        changed = {**inputs, tensor.name: others[tensor.name]}
        found = references[0] if same else outputs_of(forward, weights, changed)
        for precision in (*allowed, "int8"):
            if _all_right(found, references, allowed.get(precision)):
                silent[precision] = (*silent.get(precision, ()), tensor.name)
    return silent


def unnoticed_notice(names: Sequence[str], precision: Precision, count: int) -> Notice:
    """``count`` is how many inputs the model has."""
    if len(names) == count:
        return Notice(
            "W_WEAK_PROOF",
            f"in {precision} no input changes the outputs by more than rounding does: a contestant that returned an "
            "old answer, or left out most of the work, would not be noticed; other inputs, given with --range or "
            "--inputs, or trained weights may be better",
        )
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
