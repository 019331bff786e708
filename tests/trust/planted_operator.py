"""A release that runs one operator twice, and whether ``fairlap diff`` names that operator first.

``python -m tests.trust.planted_operator``: each pair of runs is of two new races, the first without the fault.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from fairlap.history.between_runs import compare_saved_runs
from fairlap.history.operators import compare_operators
from fairlap.history.text import operators_text
from fairlap.request.work import Work
from planted_runs import install_planted, release

FAULTS = (  # a work, the module that runs twice, and the operator that this is
    (Work("mlp", 64), "first", "aten::addmm"),
    (Work("convnet", 1), "conv1", "aten::mkldnn_convolution"),
)
_MARGIN = 0.02


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=10)
    pairs = options.parse_args().pairs
    first = 0
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        install_planted(Path(folder) / "packages", patch)
        for pair in range(pairs):
            work, module, operator = FAULTS[pair % len(FAULTS)]
            before, after = release(patch, work, 2 * pair), release(patch, work, 2 * pair + 1, module)
            compared = compare_saved_runs(before, after, margin=_MARGIN)
            [found] = compare_operators(before, after, compared, margin=_MARGIN)
            named = found.changes[0].name if found.changes else "nothing"
            first += named == operator
            print(f"pair {pair + 1}: planted {operator}, named first {named}")
            print(operators_text(found), flush=True)
    print(f"the planted operator was named first in {first} of {pairs}")
    sys.exit(first != pairs)


if __name__ == "__main__":
    main()
