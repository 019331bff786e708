"""The experiment about works that share processes finds a contestant that leaves something for the next work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fairlap.request.work import Fresh, Work
from installed_package import install_frameworks
from machine_marks import needs_proc

from .shared_processes import RatioOfBlock, compared, planned, ratios, too_many_differ


def drawn(change: float, works: int = 20, blocks: int = 8) -> list[RatioOfBlock]:
    """Of works whose ratio is higher by this share in shared processes, and noise of one per cent."""
    rng = np.random.default_rng(1)
    kinds: dict[Fresh, float] = {"every": 0.0, "never": float(np.log1p(change))}
    return [
        RatioOfBlock("a,b", f"work {work}", 1, 1, block, kind, 0.3 + shift + rng.normal(0, 0.01), (1.0, 1.0))
        for work in range(works)
        for block in range(blocks)
        for kind, shift in kinds.items()
    ]


def test_equal_ratios_are_called_equal_and_others_are_found() -> None:
    equal = compared(drawn(0.0))
    assert len(equal) == 20
    assert not too_many_differ(equal)
    found = compared(drawn(0.03))
    assert too_many_differ(found)
    assert sum(each.fresh[1] < np.exp(0.3) < each.fresh[2] for each in found) >= 16
    assert np.mean([each.change for each in found]) == pytest.approx(np.log(1.03), abs=0.003)


def test_blocks_without_a_partner_do_not_count() -> None:
    found = drawn(0.0, works=1, blocks=6)
    assert [each.blocks for each in compared(found[:-1])] == [5]
    assert compared([each for each in found if each.fresh == "every"]) == []


@needs_proc
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_contestant_that_leaves_something_for_the_next_work_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_frameworks(tmp_path / "installed", monkeypatch, {"serial": "serial_framework:Serial"})
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    works = [Work("mlp", batch) for batch in (1, 2, 4, 8)]
    plans = [planned("serial,serial:leaves", works, 5, threads=1, seed=1, fresh=kind) for kind in ("every", "never")]
    result = compared([each for block in ratios(plans) for each in block])
    assert len(result) == len(works)
    assert min(each.change for each in result) > 1
    assert too_many_differ(result)
