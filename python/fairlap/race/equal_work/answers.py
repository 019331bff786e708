"""Equal work: answers against the float64 reference, weights by hash, settings as requested.

Gradients are also compared with each other: the first right ones of a work are what the others are compared with. The
slope along a few directions is exact but sees little of a large gradient. Two frameworks that agree element by
element to rounding cannot both be wrong in the same way by chance.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from fairlap import quantity_text
from fairlap.errors import FairlapError
from fairlap.frameworks.contract import NO_WEIGHTS, UNKNOWN
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import Arrays
from fairlap.models.checks.answer_check import OutputError, output_errors, quantized_errors
from fairlap.models.checks.token_check import (
    differing_tokens,
    first_beyond,
    first_difference,
    logits_of,
    other_tokens,
    tokens_alone,
    why_no_tokens,
)
from fairlap.models.fp8_graphs.fp8_numbers import FP8
from fairlap.models.spec import Tolerance
from fairlap.race.equal_work.materials import IN_TURN, UNSEEN, Materials
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.race.equal_work.training_answers import AFTER_TRAINING
from fairlap.request.fields.device_conditions import CACHE, REGIME, DeviceConditions
from fairlap.request.fields.device_conditions import CODE as CONDITIONS
from fairlap.request.work import Precision
from fairlap.scenarios.process_result import TOKENS, AnswerError

GRADIENT = "grad/"
PEER_GRADIENT = "gradient compared with"
LARGEST_GRADIENT_DISAGREEMENT = {"fp32": 1e-3, "tf32": 2.5e-2, "fp16": 2.5e-2, "autocast": 1e-1, "bf16": 1e-1}
_PRECISIONS: Mapping[str, Precision] = {
    "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8", "int16": "int8", FP8: "fp8",
}  # fmt: skip
"""Of types of a user's file."""
_STEPS = frozenset(("int8", "uint8"))
_SATURATES = ". On CPUs without VNNI products of signed and unsigned bytes saturate: quantize with reduce_range=True"
_NEARLY_ONE = 0.99995  # a cosine that would be shown as 1
_OF_ROUNDING = re.compile("precision|tf32")
_FEW_NUMBERS = 16
_NUMBER = re.compile(r"^\d+$")


class OtherWork(FairlapError):
    """A contestant did not do the work that was asked for, which disqualifies it. The message has the figure."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message, code=code)


def answer_errors(materials: Materials, file: Path, which: str, when: str) -> list[AnswerError]:
    """Every array of one answer against the reference; raises only when the file itself is no answer."""
    return array_errors(materials, safetensors.read(file), which, when)


def array_errors(materials: Materials, got: Arrays, which: str, when: str) -> list[AnswerError]:
    return mode_side(materials.work.mode).errors(materials, got, which, when)


def reference_errors(materials: Materials, got: Arrays, reference: Arrays, when: str) -> list[AnswerError]:
    """Compare each array of the reference with that of the answer.

    Of an answer that is tokens alone, the reference is that of what its contestant read.
    """
    if (tokens := tokens_alone(got)) is not None and materials.spec.continuation:
        return [_token_error(materials, tokens, reference, when)]
    errors = [_error(materials, name, when, got, expected) for name, expected in reference.items()]
    if not materials.spec.continuation:
        return errors
    logits, chosen = (tensor.name for tensor in materials.spec.outputs)
    if all(error.right for error in errors):
        why = other_tokens(got[logits], got[chosen], reference[logits])
        return [msgspec.structs.replace(error, why=why) if error.what == chosen else error for error in errors]
    where = first_difference(got[logits], got[chosen], reference[logits])
    return [error if error.right else _located(error, where) for error in errors]


def _token_error(materials: Materials, tokens: np.ndarray, reference: Arrays, when: str) -> AnswerError:
    """Judge the reference's own logits of the tokens as those that a contestant hands out of what it chose."""
    logits, chosen = (tensor.name for tensor in materials.spec.outputs)
    expected, tolerance = reference[logits], materials.tolerance(chosen)
    if why := why_no_tokens(tokens, expected):
        return AnswerError(TOKENS, when, None, None, None, False, why)
    largest = expected.max(axis=2)
    found = output_errors(chosen, logits_of(tokens, expected), largest, tolerance)
    allowed = np.maximum(tolerance.absolute, tolerance.relative * np.abs(largest))
    why = differing_tokens(tokens, expected) if found.right else first_beyond(tokens, expected, allowed) or found.why
    return AnswerError(TOKENS, when, None, None, None, found.right, why)


def _located(error: AnswerError, where: str) -> AnswerError:
    return msgspec.structs.replace(error, why="; ".join(filter(None, (where, error.why))))


def _error(materials: Materials, name: str, when: str, got: Arrays, expected: np.ndarray) -> AnswerError:
    if name not in got:
        raise OtherWork(f"its answer lacks {name}", "E_OUTPUT")
    if materials.work.precision == "int8":
        return recorded(quantized_errors(name, got[name], expected, materials.usual(name)), when)
    return answer_error(name, when, got[name], expected, materials.tolerance(name))


def answer_error(name: str, when: str, got: np.ndarray, expected: np.ndarray, tolerance: Tolerance) -> AnswerError:
    return recorded(output_errors(name, got, expected, tolerance), when)


def recorded(found: OutputError, when: str) -> AnswerError:
    name = found.name
    return AnswerError(name, when, found.cosine, found.worst_absolute, found.relative_error, found.right, found.why)


def require_right_on(
    materials: Materials, got: Arrays, which: str, errors: list[AnswerError], in_force: Mapping[str, str], where: str
) -> None:
    """Raise for the worst of the wrong errors, or because the answer is the right one to other inputs."""
    if all(error.right for error in errors):
        return
    apart = mode_side(materials.work.mode).tells_inputs_apart
    others = (other for other in (*IN_TURN, *UNSEEN) if other != which and apart)
    if any(all(error.right for error in array_errors(materials, got, other, which)) for other in others):
        raise OtherWork(f"{where} returned the answer to other inputs, kept from before", "E_STALE_ANSWER")
    require_right(errors, in_force, materials.own_types)


def require_right(errors: list[AnswerError], in_force: Mapping[str, str], own_types: Sequence[str] = ()) -> None:
    """Raise for the worst of the wrong ones. ``own_types`` are those of few bits that a user's file has."""
    wrong = [error for error in errors if not error.right]
    if not wrong:
        return
    worst = max(wrong, key=lambda error: error.distance)
    distances = [worst.why] if worst.why else []
    if worst.has_distance and (worst.relative is not None or not worst.why):  # else it says what is not finite
        distances.append(
            "not finite" if worst.relative is None else f"relative error {quantity_text.relative_error(worst.relative)}"
        )
    if worst.cosine is not None and worst.cosine < _NEARLY_ONE and "cosine" not in worst.why:
        distances.append(f"cosine {worst.cosine:.4f}")
    if worst.worst_absolute is not None:
        distances.append(f"worst element off by {worst.worst_absolute:.1e}")
    rounding = {key: value for key, value in in_force.items() if _OF_ROUNDING.search(key)}  # the row has all of them
    settings = ", ".join(f"{key} {value}" for key, value in rounding.items())
    against = "" if worst.what.startswith(PEER_GRADIENT) else " from the reference"
    code = "E_GRADIENT" if worst.what.startswith("gradient") else "E_OUTPUT"
    if worst.what.endswith(AFTER_TRAINING):
        code = "E_TRAINING"
    in_force_text = f". In force: {settings}" if settings else ""
    hint = _SATURATES if code == "E_OUTPUT" and _STEPS.intersection(own_types) else ""
    found = f"{worst.what} differs{against} ({worst.when}: {', '.join(distances)})"
    raise OtherWork(f"{found}{in_force_text}{hint}", code)


def require_weights(materials: Materials, loaded_hash: str) -> None:
    """Compare the weights' hash, which is empty where a framework cannot report them; its settings give the reason."""
    if loaded_hash and loaded_hash != materials.weights_hash:
        raise OtherWork(
            f"its weights are not those it was given (hash {loaded_hash[:12]}, not {materials.weights_hash[:12]})",
            "E_WEIGHTS",
        )


def require_settings(
    in_force: Mapping[str, str], threads: int, precision: Precision, own_types: Sequence[str] = ()
) -> None:
    """Require of what can be read back that it is what was asked for, or a type of few bits of the user's file."""
    read = in_force.get("threads", "")
    if _NUMBER.match(read) and int(read) != threads:
        raise OtherWork(
            f"it runs on {quantity_text.count(int(read), 'thread')}, not on the {threads} asked for", "E_THREADS"
        )
    found = in_force.get("precision", precision)
    if found in (precision, NO_WEIGHTS) or is_unknown(in_force, "precision"):
        return
    allowed = [_PRECISIONS[each] for each in own_types if each in _PRECISIONS]
    if not allowed or not set(found.split(" and ")) <= {*allowed, precision}:
        raise OtherWork(f"it computes in {found}, not in {' or '.join((*allowed, precision))}", "E_PRECISION")


def require_conditions(wanted: DeviceConditions | None, in_force: Mapping[str, str]) -> None:
    """Require that its GPU was as asked for when its calls were timed."""
    if wanted is None:
        return
    asked = {CACHE: wanted.cache == "cold", REGIME: bool(wanted.regime)}
    if any(is_asked and not in_force.get(name) for name, is_asked in asked.items()):
        raise OtherWork(f"its worker does not report that it timed calls with {wanted.text}", CONDITIONS)


def is_unknown(in_force: Mapping[str, str], setting: str) -> bool:
    """Whether the contestant says itself that it cannot know it."""
    return in_force.get(setting, "").startswith(UNKNOWN)


def require_changed(before: Path, changed: Path, precision: Precision = "fp32") -> None:
    """Refuse the same answer to other inputs, which is an answer kept from before.

    A few numbers of few bits, or tokens alone, may be the same by chance; what is kept is still found, because it is
    wrong.
    """
    first, second = safetensors.read(before), safetensors.read(changed)
    if tokens_alone(first) is not None:
        return
    if precision != "fp32" and sum(array.size for array in first.values()) < _FEW_NUMBERS:
        return
    if all(name in second and np.array_equal(first[name], second[name]) for name in first):
        raise OtherWork("it gave the same answer to other inputs: its answer is kept from before", "E_STALE_ANSWER")


class Agreement:
    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._first: dict[Path, tuple[str, Path]] = {}  # by what the contestants were given

    def errors(self, materials: Materials, contestant: str, answer: Path) -> list[AnswerError]:
        """Measure the gradients' distance from the first ones: the norm of the difference over the norm."""
        work = materials.work
        if not mode_side(work.mode).compares_peers:
            return []
        given = materials.folder / f"{work.mode}-{work.precision}"
        if given not in self._first:
            kept = self._scratch / f"first-{len(self._first)}.safetensors"
            shutil.copyfile(answer, kept)
            self._first[given] = (contestant, kept)
        whose, kept = self._first[given]
        if whose == contestant:
            return []
        first, own = safetensors.read(kept), safetensors.read(answer)
        names = [name for name in first if name.startswith(GRADIENT)]
        difference = math.sqrt(sum(float(np.sum(np.square(own[name] - first[name]))) for name in names))
        norm = math.sqrt(sum(float(np.sum(np.square(first[name]))) for name in names))
        relative = difference / max(norm, 1e-300)
        # A unit that rounding puts on the other side of a kink moves single gradients more than the slopes.
        allowed = LARGEST_GRADIENT_DISAGREEMENT[work.precision] + 3 * materials.sway
        return [AnswerError(f"{PEER_GRADIENT} {whose}", "before", math.nan, math.nan, relative, relative <= allowed)]
