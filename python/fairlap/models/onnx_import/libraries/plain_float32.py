"""NumPy in the model's own types, one operation after the other: what a right framework may be off by."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlap.models.onnx_import.libraries.numpy_library import NumPyLibrary


class PlainFloat32(NumPyLibrary):
    def __init__(self) -> None:
        super().__init__(wide=False)
        exact_sigmoid = self.functions["Sigmoid"]

        def sigmoid(value: Any) -> Any:
            """Round to the last place of one, as a sigmoid does that is computed as a half plus an odd function.

            ONNX Runtime's is; of answers that are nearly 0 it has few digits left.
            """
            found = exact_sigmoid(value)
            return (found + 1) - 1 if found.dtype == np.float32 else found

        self.functions["Sigmoid"] = sigmoid
