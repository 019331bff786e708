"""What two prompts in a row begin with, which a runtime that keeps keys and values need not read again."""

from __future__ import annotations

import numpy as np
from fairlap.frameworks.contract_parts.generation import KeptPrompt


def test_the_beginning_counts_that_every_item_has_again_and_never_the_whole_prompt() -> None:
    kept = KeptPrompt()
    one = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert kept.known(one) == 0
    assert kept.known(one) == 3  # the last one is read, since its logits are wanted
    other = one.copy()
    other[1, 2] = 9
    assert kept.known(other) == 2
    assert kept.known(one) == 2  # with the prompt before, not with the first one
    assert kept.known(one[:, :3]) == 0
    assert kept.known(np.array([[0, 2, 3]])) == 0
