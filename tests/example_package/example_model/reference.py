from __future__ import annotations

from typing import Any

from fairlap.models.arrays import Arrays


def forward(weights: Arrays, inputs: Arrays) -> dict[str, Any]:
    return {"product": inputs["row"] @ weights["matrix"].T}
