"""Sets of inputs by name, and why a file of them cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlap.errors import described

CODE = "E_SOURCE_INPUTS"

Sets = Sequence[dict[str, np.ndarray]]


def why_unreadable(error: Exception) -> str:
    """NumPy's own text advises to unpickle, and the operating system's repeats the path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, EOFError):
        return "it is empty"
    if "pickled" in str(error):  # what NumPy takes any file for that does not begin as its own do
        return "it is not a file of NumPy's, .npy or .npz"
    of_objects = any(each in str(error) for each in ("allow_pickle", "Python objects"))
    return "it holds Python objects, which are not read" if of_objects else described(error)
