"""Small scientific operations of every kind in one framework, measured as the reference does; prints JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find
from fairlap.models.workload import Workload

ROUNDOFF = 2.0**-24


def main(framework: str, *names: str) -> dict[str, Any]:
    answer_in = {"torch": _in_torch, "jax": _in_jax, "tensorflow": _in_tensorflow}[framework]
    return {name: _measured(name, answer_in) for name in names}


def _measured(name: str, answer_in: Any) -> dict[str, str]:
    found = find(name)
    weights, inputs = draw_weights(found.spec, 1), draw_inputs(found.spec, 1, 2)
    work = Workload(found.spec, found.package, 1, "infer", "fp32", weights, inputs)
    got = dict(zip([tensor.name for tensor in found.spec.outputs], map(np.asarray, answer_in(work)), strict=True))
    reference = work.implementation_of_reference()
    errors = reference.output_errors(weights, inputs, got, reference_answers(work), ROUNDOFF)
    return {error.name: error.why for error in errors}


def _in_torch(work: Workload) -> Any:
    import torch

    model = work.implementation("torch").build(work.weights)
    with torch.inference_mode():
        return model(**{name: torch.tensor(array) for name, array in work.inputs.items()})


def _in_jax(work: Workload) -> Any:
    import jax

    model = work.implementation("jax")
    return jax.jit(model.forward)(model.params(work.weights), dict(work.inputs))


def _in_tensorflow(work: Workload) -> Any:
    import tensorflow as tf

    model = work.implementation("tensorflow").build(work.weights, tf.float32)
    return model({name: tf.constant(array) for name, array in work.inputs.items()})


if __name__ == "__main__":
    answer_file = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no answer
    json.dump(main(*sys.argv[1:]), answer_file)
    answer_file.flush()
    os._exit(0)
