"""The errors of a model file that a user brings."""

from __future__ import annotations

from fairlap.errors import FairlapError


class ModelFileInvalid(FairlapError, ValueError):
    """The file is not a valid ONNX model, or is too large to read safely."""

    code = "E_MODEL_FILE"


class DimensionsUnbound(FairlapError, ValueError):
    """Inputs have dimensions without a size, or are given sizes that do not fit."""

    code = "E_MODEL_DIMENSIONS"


class OperatorsUnsupported(FairlapError, NotImplementedError):
    """The importer lacks operators, attributes or types that the model uses."""

    code = "E_MODEL_OPERATOR"


class SizesDoNotFit(ModelFileInvalid):
    """A node of the model cannot compute values of these sizes."""
