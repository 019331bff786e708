"""The documented operators are the claimed ones, and pass the node tests of onnx.

Here in NumPy and PyTorch, in all four libraries with `make test-importer`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.onnx_import.build import ImportedModel, LibraryName
from fairlap.models.onnx_import.libraries.lossy_sums import LossySums
from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary
from fairlap.models.onnx_import.operators.table import claimed
from onnx_cases import LIBRARIES, Case, check, claimed_cases, loaded, reason_to_exclude

_CHOSEN: tuple[LibraryName, ...] = LIBRARIES if os.environ.get("FAIRLAP_TEST_IMPORTER") else ("numpy", "torch")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return list(claimed_cases())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("library", _CHOSEN)
def test_every_case_of_the_claimed_operators_passes(cases: list[Case], library: LibraryName) -> None:
    if library != "numpy":
        pytest.importorskip(library, reason="`make test` installs it and runs this")
    failed = {}
    for case in cases:
        if reason_to_exclude(case.name, library) is None:
            try:
                check(case, loaded(case), library)
            except Exception as error:
                failed[case.name] = str(error)[:200]
    assert failed == {}


@pytest.mark.slow
def test_what_float32_loses_in_an_operator_moves_its_answers_by_little(cases: list[Case]) -> None:
    """Whole numbers stay; an attention that caps its scores and a loss of few numbers amplify roundings the most."""
    far = {}
    for case in (each for each in cases if reason_to_exclude(each.name, "numpy") is None):
        graph = loaded(case)
        with np.errstate(all="ignore"):
            exact, moved = (
                ImportedModel(graph, library)(graph.weights, case.inputs) for library in (NumPyLibrary(), LossySums(1))
            )
        for name, array in exact.items():
            if array.dtype.kind == "f":
                largest = np.abs(array[np.isfinite(array)]).max(initial=0.0)
                same = np.allclose(moved[name], array, rtol=0, atol=5e-5 * largest, equal_nan=True)
            else:
                same = np.array_equal(moved[name], array)
            if not same or moved[name].shape != array.shape:
                far[case.name] = name
    assert far == {}


@pytest.mark.slow
def test_excluded_cases_are_refused_with_a_code(cases: list[Case]) -> None:
    from fairlap.models.onnx_import import build

    codes = set()
    for case in cases:
        if reason_to_exclude(case.name) is not None:
            with pytest.raises(FairlapError) as raised:
                build(loaded(case), "numpy")(*_no_arrays(case))
            codes.add(raised.value.code)
    assert codes == {"E_MODEL_OPERATOR"}


def _no_arrays(case: Case) -> tuple[dict[str, object], dict[str, object]]:
    return {}, dict(case.inputs)


@pytest.mark.slow
def test_at_least_a_hundred_operators_are_claimed_and_tested(cases: list[Case]) -> None:
    tested = {operator for case in cases if reason_to_exclude(case.name) is None for operator in case.operators}
    assert len(claimed()) >= 100
    assert set(claimed()) - tested <= {"GlobalLpPool"}  # onnx has no case for it


_PAGE = Path(__file__).parents[4] / "docs" / "reference" / "onnx-import.md"


def test_the_documentation_lists_the_operators_that_are_claimed() -> None:
    """`python tests/bench/importer_table.py` writes the list."""
    (part,) = re.findall("<!-- operators -->(.*?)<!-- end of operators -->", _PAGE.read_text(), re.DOTALL)
    assert re.findall(r"`(\w+)`", part) == claimed()
