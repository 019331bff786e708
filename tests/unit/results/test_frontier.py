"""The frontier of time against error holds the contestants that no other one beats in both."""

from __future__ import annotations

from fairlap.results.frontier import Point, with_frontier

POINTS = [
    Point("torch", "fp32", 10.0, 2e-7, qualified=True),
    Point("jax", "fp32", 12.0, 1e-7, qualified=True),
    Point("torch", "bf16", 6.0, 5e-3, qualified=True),
    Point("jax", "bf16", 7.0, 6e-3, qualified=True),
    Point("onnxruntime", "int8", 3.0, 3e-2, qualified=True),
    Point("litert", "int8", 2.0, 4e-1, qualified=False),
]


def test_what_is_slower_and_less_exact_is_not_on_the_frontier() -> None:
    found = {(each.contestant, each.precision) for each in with_frontier(POINTS) if each.on_frontier}
    assert found == {("torch", "fp32"), ("torch", "bf16"), ("onnxruntime", "int8")}


def test_errors_of_fp32_count_as_equal() -> None:
    """jax is off by half as much as torch in fp32, which is rounding in another order."""
    assert not with_frontier(POINTS)[1].on_frontier


def test_what_is_not_ranked_neither_is_on_the_frontier_nor_keeps_others_from_it() -> None:
    assert not with_frontier(POINTS)[5].on_frontier
    assert with_frontier(POINTS)[4].on_frontier
