"""Answers of OpenVINO: the caches are states of an infer request, as in the models that its own tools write."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.frameworks.contract_parts.generation import Generation, Tokens

_PAST = "past_"


def with_states(model: Any) -> None:
    """Each cache that goes in and comes out becomes a state, which is empty after a reset."""
    from openvino.passes import MakeStateful, Manager

    manager = Manager()
    past = (name for port in model.inputs for name in port.names if name.startswith(_PAST))
    manager.register_pass(MakeStateful({name: name.removeprefix(_PAST) for name in past}))
    manager.run_passes(model)


def generation(compiled: Any) -> Generation:
    import openvino

    request = compiled.create_infer_request()

    def following(_state: None, tokens: Tokens) -> tuple[list[int], Any, None]:
        request.set_input_tensor(openvino.Tensor(tokens))
        request.infer()
        logits = np.array(request.get_output_tensor().data)  # the next step writes to the same memory
        return logits.argmax(axis=1).tolist(), logits, None

    def first(prompt: Tokens) -> tuple[list[int], Any, None]:
        request.reset_state()
        return following(None, prompt)

    return Generation(first, following, np.asarray)
