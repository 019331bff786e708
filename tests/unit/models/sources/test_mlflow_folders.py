"""A folder of MLflow is raced by the file that its MLmodel names, and nothing in it is unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.opening import Order, opened_folder
from fairlap.race.planning.sources_from_request import sources_named
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from machine_marks import needs
from onnx_files import BOUND, code_of, masked_lookup, opened, source_of

needs("onnx")

# As MLflow 2.14 and 3.1 write it, with what could be taken for settings of a flavour.
INDEX = """artifact_path: model
flavors:
{flavour}
  python_function:
    data: elsewhere.onnx
    env:
      conda: conda.yaml
      virtualenv: python_env.yaml
    loader_module: mlflow.anything
    python_version: 3.11.9
mlflow_version: 2.14.1
model_size_bytes: 1024
model_uuid: 0123456789abcdef0123456789abcdef
signature:
  inputs: '[{{"name": "flavors: onnx", "type": "tensor", "tensor-spec": {{"dtype":
    "float32", "shape": [-1, 28, 28]}}}}]'
  outputs: '[{{"type": "tensor", "tensor-spec": {{"dtype": "float32", "shape": [-1, 10]}}}}]'
  params: null
utc_time_created: '2024-06-20 09:30:00.123456'
"""
ONNX = """  onnx:
    code: null
    data: model.onnx
    onnx_session_options: null
    onnx_version: 1.16.1
    providers:
    - CUDAExecutionProvider
    - CPUExecutionProvider"""
PYTORCH = """  pytorch:
    code: null
    model_data: data
    pytorch_version: 2.3.1+cpu"""
MODULE = """  tensorflow:
    code: null
    model_type: tf2-module
    saved_model_dir: tf2model"""
KERAS_IN_TENSORFLOW = """  tensorflow:
    code: null
    data: data
    keras_version: 2.16.1
    model_type: keras
    save_format: tf"""
KERAS = """  keras:
    data: data
    keras_backend: jax
    keras_version: 3.4.1
    save_exported_model: false"""
SKLEARN = """  sklearn:
    code: null
    pickled_model: model.pkl
    serialization_format: cloudpickle
    sklearn_version: 1.5.0"""


def folder_of(folder: Path, flavour: str, *files: str) -> Path:
    folder.mkdir()
    (folder / "MLmodel").write_text(INDEX.format(flavour=flavour))
    for name in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"?")
    return folder


def named(folder: Path) -> Source:
    (found,) = sources_named(RaceRequest(models=(str(folder),), contestants=Contestants("torch")), str(folder))
    assert found.text == str(folder)
    return found


@pytest.mark.parametrize(
    ("flavour", "file"),
    [
        (ONNX, "model.onnx"),
        (PYTORCH, "data/model.pt2"),
        (PYTORCH, "data/model.pth"),
        (MODULE, "tf2model/saved_model.pb"),
        (KERAS_IN_TENSORFLOW, "data/model.keras"),
        (KERAS, "data/model.keras"),
    ],
)
def test_the_file_of_the_flavour_is_raced(tmp_path: Path, flavour: str, file: str) -> None:
    folder = folder_of(tmp_path / "churn", flavour, file, "elsewhere.onnx")
    wanted = folder / file
    assert Path(named(folder).path) == (wanted.parent if wanted.suffix == ".pb" else wanted)


def test_it_is_opened_as_the_file_alone(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "churn", ONNX)
    file = masked_lookup(folder / "model.onnx")
    in_folder = source_of(named(folder).path, BOUND)
    assert opened(in_folder, tmp_path)[1].spec.outputs == opened(source_of(file, BOUND), tmp_path)[1].spec.outputs


@pytest.mark.parametrize(
    ("flavour", "words"), [(SKLEARN, "sklearn"), ("  python_function:\n    python_model: model.pkl", "python_function")]
)
def test_another_flavour_is_refused_by_its_name(tmp_path: Path, flavour: str, words: str) -> None:
    with pytest.raises(SourceError) as refused:
        named(folder_of(tmp_path / "churn", flavour, "model.pkl"))
    assert (refused.value.code, words in str(refused.value)) == ("E_SOURCE", True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("trust", [False, True])
def test_a_pickled_module_is_refused_by_the_kind_of_its_file(tmp_path: Path, trust: bool) -> None:
    folder = folder_of(tmp_path / "churn", PYTORCH, "data/model.pth")
    with zipfile.ZipFile(folder / "data" / "model.pth", "w") as archive:
        archive.writestr("model/data.pkl", b"cos\nsystem\n(S'touch /tmp/unpickled'\ntR.")
    source = named(folder)
    with pytest.raises(SourceError) as refused:
        opened_folder(Order(Source(source.text, source.path, trust=trust), {"inputs": 0, "changed": 1}, str(tmp_path)))
    assert (refused.value.code, "torch.save" in str(refused.value)) == ("E_SOURCE", True)


@pytest.mark.parametrize("place", ["../model.onnx", "/etc/hostname", "linked.onnx"])
def test_a_place_out_of_the_folder_is_refused(tmp_path: Path, place: str) -> None:
    folder = folder_of(tmp_path / "churn", f"  onnx:\n    data: {place}")
    masked_lookup(tmp_path / "model.onnx")
    (folder / "linked.onnx").symlink_to(tmp_path / "model.onnx")
    with pytest.raises(SourceError) as refused:
        named(folder)
    assert refused.value.code == "E_SOURCE_TRUST"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "flavors:",
        "flavors: {onnx: {data: model.onnx}}",
        "\x00\xff: [",
        "flavors:\n  onnx:",
        "flavors:\n  onnx:\n    data: .",
        f"flavors:\n  onnx:\n    data: {'x' * 5000}",
        "flavors:\n" + "".join(f"  own{number}:\n    data: x\n" for number in range(5000)),
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n",
        "a: b\n" * 300_000,
    ],
    ids=["empty", "none", "in one line", "no text", "cut", "itself", "too long", "many", "pointer", "too large"],
)
def test_an_index_without_a_model_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    folder = folder_of(tmp_path / "churn", ONNX)
    (folder / "MLmodel").write_text(text)
    with pytest.raises(SourceError) as refused:
        named(folder)
    assert refused.value.code == "E_SOURCE"
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < len(str(folder)) + 250


def test_an_index_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "churn", ONNX)
    (folder / "MLmodel").unlink()
    (folder / "MLmodel").symlink_to("/proc/self/mem")  # a file that gives an error
    with pytest.raises(SourceError) as refused:
        named(folder)
    assert refused.value.code == "E_SOURCE"


def test_a_folder_that_lacks_its_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"model\.onnx") as refused:
        named(folder_of(tmp_path / "churn", ONNX))
    assert refused.value.code == "E_SOURCE"


def test_among_several_files_the_one_inside_is_to_be_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "churn", ONNX, "model.onnx")
    both = Source("m.onnx,churn", str(masked_lookup(tmp_path / "m.onnx")), exports=(str(folder),))
    assert code_of(both, tmp_path) == "E_SOURCE"
