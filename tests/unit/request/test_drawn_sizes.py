"""Sizes that are drawn follow the distribution that was named, and what names none is refused."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.fields.sizes.drawn_sizes import DRAWN, LARGEST, drawn_sizes
from fairlap.request.fields.sizes.mix import MOST_SIZES, mix_in


def drawn(text: str, seed: int = 0) -> list[int]:
    """In ascending order."""
    name, counts = drawn_sizes(f"seq={text}", seed)
    assert name == "seq"
    found = sorted(counts.elements())
    assert len(found) == DRAWN <= MOST_SIZES
    return found


def share_below(size: float, of: list[int]) -> float:
    return sum(each <= size for each in of) / len(of)


def test_sizes_of_a_lognormal_distribution_lie_at_its_quantiles() -> None:
    """By the normal distribution of Python's own library: one size in each sixteenth."""
    found = drawn("lognormal(4,0.5):1..100000")
    for part, size in enumerate(found):
        low, high = (
            math.exp(NormalDist(4, 0.5).inv_cdf(min(max(each / DRAWN, 1e-9), 1 - 1e-9))) for each in (part, part + 1)
        )
        assert low - 1 <= size <= high + 1, (part, size)


def test_sizes_of_a_uniform_distribution_are_spread_evenly() -> None:
    found = drawn("uniform:1..160")
    assert [(size - 1) // 10 for size in found] == list(range(DRAWN))


def test_geometric_and_zipf_have_their_known_shares() -> None:
    """Half of the geometric distribution with a share of a half is its first size; of Zipf's, 1 / (1 + 1/2 + 1/3)."""
    assert share_below(8, drawn("geometric(0.5):8..512")) == pytest.approx(0.5, abs=1 / DRAWN)
    assert share_below(9, drawn("geometric(0.5):8..512")) == pytest.approx(0.75, abs=1 / DRAWN)
    assert share_below(1, drawn("zipf(1):1..3")) == pytest.approx(6 / 11, abs=1 / DRAWN)


def test_the_seed_draws_and_the_limits_hold() -> None:
    text = "lognormal(4,0.5):8..60"
    assert drawn(text, 3) == drawn(text, 3)
    assert any(drawn(text, 3) != drawn(text, seed) for seed in range(4, 8))
    assert all(8 <= size <= 60 for seed in range(20) for size in drawn(text, seed))
    assert drawn("uniform:7..7") == [7] * DRAWN


def test_a_mix_keeps_what_it_was_drawn_from_and_is_the_same_work_as_its_sizes_in_a_file(tmp_path: Path) -> None:
    text = "ids:1+mask:1=uniform:4..90"
    mix = mix_in(text, 5)
    assert (mix.names, mix.file, mix.total) == (("ids:1+mask:1",), text, DRAWN)
    assert mix != mix_in(text, 6)
    rows = [str(size) for (size,), count in zip(mix.sizes, mix.calls, strict=True) for _ in range(count)]
    (tmp_path / "sizes.csv").write_text("\n".join([mix.names[0], *rows]))
    assert mix_in(str(tmp_path / "sizes.csv")).identity == mix.identity


@pytest.mark.parametrize(
    "text",
    [
        "seq=",
        "seq=normal(4,1):8..512",
        "seq=lognormal(4):8..512",
        "seq=lognormal(4,0):8..512",
        "seq=lognormal(4,nan):8..512",
        "seq=lognormal(four,1):8..512",
        "seq=lognormal(4,0.5)",
        "seq=lognormal(4,0.5):512..8",
        "seq=lognormal(4,0.5):0..8",
        "seq=lognormal(400,0.1):1..8",
        "seq=uniform(3):1..8",
        "seq=uniform:-1..8",
        f"seq=uniform:1..{LARGEST + 1}",
        "seq=uniform:1..99999999999999999999999",
        "seq=geometric(1):1..8",
        "seq=geometric:1..8",
        "seq=zipf(0):1..8",
        "=uniform:1..8",
        "a=uniform:1..8,b=uniform:1..8",
    ],
)
def test_what_names_no_distribution_is_one_line_with_a_code(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        mix_in(text)
    assert refused.value.code == "E_SHAPES"
    assert "\n" not in str(refused.value)
