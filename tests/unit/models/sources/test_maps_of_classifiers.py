"""A classifier that scikit-learn's exporter made, and ONNX Runtime's package ships, races without its dictionaries."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from fairlap.frameworks.contract import Settings, Unsupported
from fairlap.frameworks.registry import framework_named
from machine_marks import needed
from onnx_files import materials_of, source_of

onnxruntime = needed("onnxruntime")


def test_probabilities_are_the_numbers_of_the_dictionaries(tmp_path: Path) -> None:
    file = Path(onnxruntime.__file__).parent / "datasets" / "logreg_iris.onnx"
    materials = materials_of(source_of(file), tmp_path)
    work = materials.workload("inputs")
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    label, maps = session.run(["label", "probabilities"], dict(work.inputs))
    assert {type(each) for each in maps} == {dict}
    reference = materials.reference("inputs")
    np.testing.assert_array_equal(reference["label"], label)
    np.testing.assert_allclose(reference["probabilities"], [list(each.values()) for each in maps], rtol=1e-6)
    assert materials.spec.outputs[1].shape == (3, 3)


def test_openvino_lacks_its_operators_and_says_so(tmp_path: Path) -> None:
    adapter = framework_named("openvino")
    pytest.importorskip(adapter.module, reason="`make test` installs it and runs this")
    file = Path(onnxruntime.__file__).parent / "datasets" / "logreg_iris.onnx"
    work = materials_of(source_of(file), tmp_path).workload("inputs")
    with pytest.raises(Unsupported, match="LinearClassifier"):
        adapter().prepare(work, Settings(threads=1), lambda _: nullcontext())
