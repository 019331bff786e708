"""NumPy's library for matrices has one thread for a while, and then as many as before."""

from __future__ import annotations

import numpy as np  # noqa: F401  (loads the library)
import pytest
from fairlap.machine.matrix_threads import one_thread_for_matrices

threadpoolctl = pytest.importorskip("threadpoolctl", reason="it comes with scikit-learn")


def threads() -> list[int]:
    return [each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]


def test_matrices_have_one_thread_and_then_as_many_as_before() -> None:
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        with one_thread_for_matrices():
            assert set(threads()) <= {1}
        assert threads() == before
