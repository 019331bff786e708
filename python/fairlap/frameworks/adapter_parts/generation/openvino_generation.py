"""Answers of OpenVINO: the caches are states of an infer request, as in the models that its own tools write.

Of an encoder-decoder, the keys and the values of the prompt are outputs of the encoder's request, whose memory the
decoder's request reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.frameworks.contract_parts.generation import Generation, Tokens

_PAST, _CROSS = "past_", "cross_"


def with_states(model: Any) -> None:
    """Each cache that goes in and comes out becomes a state, which is empty after a reset."""
    from openvino.passes import MakeStateful, Manager

    manager = Manager()
    past = (name for port in model.inputs for name in port.names if name.startswith(_PAST))
    manager.register_pass(MakeStateful({name: name.removeprefix(_PAST) for name in past}))
    manager.run_passes(model)


def generation(compiled: Any, encoder: Any = None) -> Generation:
    import openvino

    request = compiled.create_infer_request()
    of_prompt: Any = None if encoder is None else encoder.create_infer_request()
    cross = [name for port in compiled.inputs for name in port.names if name.startswith(_CROSS)]

    def following(_state: None, tokens: Tokens) -> tuple[list[int], Any, None]:
        request.set_input_tensor(0, openvino.Tensor(tokens))
        request.infer()
        found = request.get_output_tensor().data
        logits = np.array(found).reshape(len(found), -1)  # the next step writes to the same memory
        return logits.argmax(axis=1).tolist(), logits, None

    def first(prompt: Tokens) -> tuple[list[int], Any, None]:
        request.reset_state()
        return following(None, prompt if of_prompt is None else encoded(prompt))

    def encoded(prompt: Tokens) -> Tokens:
        """Hand over the keys and the values of the prompt, and return the token that the decoder begins with."""
        of_prompt.set_input_tensor(0, openvino.Tensor(prompt))
        of_prompt.infer()
        for name in cross:
            request.set_tensor(name, of_prompt.get_tensor(name))
        return np.array(of_prompt.get_output_tensor(0).data)

    def cache_bytes(_state: None) -> int:
        tensors = [*(each.state for each in request.query_state()), *(request.get_tensor(name) for name in cross)]
        return sum(each.byte_size for each in tensors)

    return Generation(first, following, np.asarray, cache_bytes)
