"""A variant without a mode is an outcome of its row, and one for training alone is refused before the race."""

from __future__ import annotations

import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.contract import Framework
from fairlap.frameworks.registry import framework_named
from fairlap.launch.runners import require_modes
from fairlap.request.names import ContestantName, Contestants


def frameworks(text: str) -> dict[ContestantName, type[Framework]]:
    return {name: framework_named(name.framework) for name in Contestants(text)}


def test_a_derivative_that_a_variant_lacks_is_an_outcome() -> None:
    require_modes(frameworks("torch:compile,torch"), ("third",))


def test_a_variant_that_only_trains_is_refused_for_other_modes() -> None:
    require_modes(frameworks("torch:fsdp"), ("train",))
    with pytest.raises(InvalidRequest) as refused:
        require_modes(frameworks("torch,torch:fsdp"), ("train", "infer"))
    assert refused.value.code == "E_CONTESTANT"
