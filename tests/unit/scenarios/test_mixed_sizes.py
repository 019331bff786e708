"""The figure of a mix, its stalls, and the calls after which a slower start has paid off."""

from __future__ import annotations

import math
import random
import shlex
from collections import Counter
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.render.plan_command import command_of
from fairlap.request.fields.sizes.mix import Mix
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.scenarios.mixed_sizes.mix_messages import CallsOfSize, MixFound
from fairlap.scenarios.mixed_sizes.race.mix_run import round_of
from fairlap.scenarios.mixed_sizes.results.break_even import break_evens, interval
from fairlap.scenarios.mixed_sizes.results.column_definitions import ReadyInBlock


def row(name: str, ready_s: list[float], call_ns: list[float], caches: str = "warm") -> Any:
    blocks = [
        ReadyInBlock(block, ready, call, caches)  # type: ignore[arg-type]
        for block, (ready, call) in enumerate(zip(ready_s, call_ns, strict=True))
    ]
    return SimpleNamespace(contestant=name, mix_by_block=blocks)


def test_a_call_over_the_mix_is_the_weighted_median_of_each_size() -> None:
    found = MixFound((CallsOfSize("8", 30, 1e6, 5), CallsOfSize("64", 10, 5e6, 5, first_s=0.205, compiled=1)))
    assert found.call_ns == pytest.approx(2e6)
    assert found.stalls_s == pytest.approx(0.2)
    assert found.stall_share == pytest.approx(0.2 / 0.205)


def test_a_size_without_samples_leaves_no_figure() -> None:
    found = MixFound((CallsOfSize("8", 30, 1e6, 5), CallsOfSize("64", 10, None, 0, first_s=0.2)))
    assert found.call_ns is None
    assert found.stalls_s is None
    assert found.stall_share is None


def test_every_size_is_in_a_round_and_the_common_ones_as_often_as_they_occur() -> None:
    mix = Mix(("sequence",), ((8,), (16,), (32,)), (7000, 2999, 1))
    places = Counter(round_of(mix, random.Random(3)))
    assert places[2] == 1
    assert places[0] / places[1] == pytest.approx(7 / 3, rel=0.05)
    assert round_of(mix, random.Random(3)) == round_of(mix, random.Random(3))
    assert len(round_of(Mix(("a",), ((1,), (2,)), (1, 2)), random.Random(3))) == 3


def test_the_break_even_is_the_longer_start_over_the_gain_of_a_call() -> None:
    """Ready 9 s later and 1 ms quicker per call: 9,000 calls."""
    compiled = row("torch:compile", [10.0, 10.1, 9.9, 10.2, 9.8, 10.0], [2.0e6] * 6)
    eager = row("torch", [1.0] * 6, [3.0e6, 3.01e6, 2.99e6, 3.0e6, 3.02e6, 2.98e6])
    [found] = break_evens([compiled, eager])
    assert (found.later, found.sooner, found.blocks) == ("torch:compile", "torch", 6)
    assert found.calls == pytest.approx(9000, rel=0.01)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 9000 < found.high


def test_no_break_even_where_nothing_is_gained_or_it_is_not_shown() -> None:
    slow = row("slow", [10.0] * 6, [3e6] * 6)
    quick = row("quick", [1.0] * 6, [2e6] * 6)
    assert break_evens([slow, quick]) == []
    maybe = row("maybe", [10.0, 10.1, 9.9, 10.0, 10.2, 9.8], [1e6, 3e6, 1.2e6, 2.7e6, 2.1e6, 1.8e6])
    assert break_evens([maybe, quick]) == []
    assert break_evens([row("none", [], []), quick]) == []


def test_few_blocks_have_a_break_even_without_an_interval_and_cold_caches_one_of_their_own() -> None:
    later, sooner = row("later", [5.0, 5.0], [1e6, 1e6]), row("sooner", [1.0, 1.0], [2e6, 2e6])
    [found] = break_evens([later, sooner])
    assert found.calls == pytest.approx(4000)
    assert (found.low, found.with_empty_caches) == (None, None)
    assert break_evens([row("a", [5.0], [1e6], "cold"), row("b", [1.0], [2e6], "cold")])[0].with_empty_caches is None
    cold = [ReadyInBlock(9, ready, call, "cold") for ready, call in ((21.0, 1e6), (1.0, 2e6))]
    later.mix_by_block.append(cold[0])
    sooner.mix_by_block.append(cold[1])
    [found] = break_evens([later, sooner])
    assert found.calls == pytest.approx(4000)
    assert found.with_empty_caches == pytest.approx(20000)


def test_the_interval_covers_the_true_ratio_as_often_as_it_says() -> None:
    """Of 2,000 draws with a known ratio of 9,000; Fieller's interval is exact for normal errors."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(2000):
        longer_s = 9.0 + rng.normal(0, 1.0, 8)
        gained_s = 1e-3 + rng.normal(0, 2e-4, 8) + 1e-5 * (longer_s - 9.0)
        low, high = interval(longer_s, gained_s)
        covered += low <= 9000 <= high
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


def test_a_gain_that_may_be_none_has_no_upper_end() -> None:
    low, high = interval(np.array([9.0, 9.1, 8.9]), np.array([1e-3, -1e-3, 2e-3]))
    assert math.isinf(high)
    assert low < 0


def test_a_built_in_model_over_drawn_sizes_is_planned_again_by_its_own_command() -> None:
    request = RaceRequest(
        models=("convnet",), contestants=Contestants("torch"), shapes_from="image=uniform:8..16", blocks=1, seed=1
    )
    plan = plan_of(request)
    [work] = plan.works
    assert work.mix is not None
    assert work.free_sizes == dict(work.mix.dims(work.mix.usual))
    assert work.mix.text in work.label
    words = shlex.split(command_of(plan))
    assert words[words.index("--shapes-from") + 1] == "image=uniform:8..16"
    assert plan_of(request) == plan
    other = plan_of(msgspec.structs.replace(request, data_seed=5))
    assert other.works[0].id != work.id
