"""A mode is one entry of facts."""

from typing import get_args

import pytest
from fairlap.models.modes import MODES, modes_in
from fairlap.race.equal_work.mode_side import ModeSide, mode_side
from fairlap.request.work import Mode


def test_every_mode_has_facts() -> None:
    assert set(MODES) == set(get_args(Mode))


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_names_what_proves_its_answers(mode: Mode) -> None:
    assert isinstance(mode_side(mode), ModeSide)


def test_a_framework_has_the_modes_that_name_it() -> None:
    assert "simulate" in modes_in("jax")
    assert "simulate" not in modes_in("tensorflow")
    assert "jvp" in modes_in("tensorflow")
    assert modes_in("mxnet") == ()
