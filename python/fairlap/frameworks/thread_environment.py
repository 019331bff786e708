"""The variables by which numerical libraries learn how many threads to start; they are read once, at import."""

from __future__ import annotations


def thread_environment(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    return dict.fromkeys(names, str(threads))
