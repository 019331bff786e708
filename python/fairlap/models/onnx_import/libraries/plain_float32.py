"""NumPy in the model's own types, one operation after the other: what a right framework may be off by."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary

_HALF_OF_LAST_PLACE = np.float32(2.0**-24)


class PlainFloat32(NumPyLibrary):
    def __init__(self) -> None:
        super().__init__(wide=False)
        exact_sigmoid = self.functions["Sigmoid"]

        def sigmoid(value: Any) -> Any:
            """Move each by half the last place of one, as a sigmoid may be off that is a half plus an odd function.

            ONNX Runtime's is; of answers that are nearly 0 it has few digits left. Every other one is moved down, so
            that sums of many stay near.
            """
            found = exact_sigmoid(value)
            if found.dtype != np.float32:
                return found
            down = (np.arange(found.size).reshape(found.shape) % 2 == 1) & (found > 2 * _HALF_OF_LAST_PLACE)
            return found + np.where(down, -_HALF_OF_LAST_PLACE, _HALF_OF_LAST_PLACE)

        self.functions["Sigmoid"] = sigmoid
