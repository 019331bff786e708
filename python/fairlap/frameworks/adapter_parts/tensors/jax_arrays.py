"""Arrays as JAX takes them, from a workload or from a pipeline, and its arrays as NumPy's again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairlap.frameworks.adapter_parts.answers import Answers, named_gradients, named_outputs, trained_names
from fairlap.frameworks.adapter_parts.tensors.slot_views import SlotViews
from fairlap.frameworks.contract import Fed, Unsupported
from fairlap.frameworks.contract_parts.compilation import Types
from fairlap.models.arrays import Arrays
from fairlap.models.spec import LABELS
from fairlap.models.workload import Workload
from fairlap.request.work import Precision

TYPES: Mapping[Precision, str] = {"fp16": "float16", "bf16": "bfloat16"}


def put(arrays: Any, work: Workload) -> Any:
    """On JAX's device, sharing memory where it is aligned to 64 bytes, which the workload's arrays are."""
    import jax

    def one(array: Any) -> Any:
        if work.precision in TYPES and array.dtype == np.float32:
            array = array.astype(getattr(jax.numpy, TYPES[work.precision]))
        return jax.device_put(array, may_alias=True)

    return jax.tree.map(one, arrays)


def put_batch_of(arrays: Arrays, work: Workload) -> dict[str, Any]:
    """Labels stay as they are in every precision."""
    import jax

    inputs = {name: array for name, array in arrays.items() if name != LABELS}
    labels = {LABELS: jax.device_put(arrays[LABELS], may_alias=True)} if LABELS in arrays else {}
    return {**put(inputs, work), **labels}


def in_types(arrays: Mapping[str, Any], types: Types) -> dict[str, Any]:
    """As ``jit`` takes arrays of these types. By default JAX has none of 64 bits."""
    import jax

    for wanted in set(types.values()):
        if (taken := jax.dtypes.canonicalize_dtype(wanted).name) != wanted:
            raise Unsupported(f"JAX takes {wanted} as {taken} unless jax_enable_x64 is set, so nothing changes")
    return {name: each.astype(types[name]) if name in types else each for name, each in arrays.items()}


def fed_to(run: Callable[[Any], Any], slots: SlotViews, device: str) -> Fed:
    """On a CPU views go into the step as they are: JAX shares their memory, in 5 us where its from_dlpack takes 60."""
    if device == "cpu":
        return Fed(operator.attrgetter("pointer"), lambda addresses: run(slots.at(addresses)))
    import jax

    return Fed(jax.dlpack.from_dlpack, run, device)


def outputs_of(work: Workload, result: Any) -> Answers:
    return named_outputs(work.spec, [np.asarray(each) for each in result])


def gradients_of(work: Workload, canonical: Any, completed: Any, result: Any) -> Answers:
    loss, gradients = result
    by_name = canonical(completed(gradients))
    return named_gradients(np.asarray(loss), {name: by_name[name] for name in trained_names(work.spec)})
