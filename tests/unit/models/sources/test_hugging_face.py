"""A local folder of transformers becomes a work: its own weights or drawn ones, and inputs of the right kinds."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.array_files import safetensors
from fairlap.models.arrays import hash_of
from fairlap.models.sources.bundle import inputs_file, reference_file, weights_file
from fairlap.models.sources.kinds.hugging_face import HuggingFace
from fairlap.models.sources.python_models.hugging_face_models import LocalModel, example_inputs, module_of
from fairlap.models.sources.registry import kind_of
from fairlap.models.spec import Integers
from fairlap.request.fields.source import Source, dims_in, shapes_in
from onnx_files import opened
from transformers_folders import SIZES, folder_of

pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture
def _transformers() -> None:
    for module in ("torch", "transformers"):
        pytest.importorskip(module, reason="`make test` installs it and runs this")


def source_of(path: Path, **bindings: Any) -> Source:
    return Source(f"hf:{path.name}", f"hf:{path}", str(path.parent), **bindings)


def test_a_folder_and_a_configuration_are_known_by_their_prefix() -> None:
    assert kind_of("hf:./folder") is kind_of("hf:folder") is HuggingFace
    assert kind_of("hf_models:function") is not HuggingFace


@pytest.mark.slow
@pytest.mark.usefixtures("_transformers")
@pytest.mark.parametrize("name", list(SIZES))
def test_each_architecture_opens_with_a_float64_reference_and_routes(tmp_path: Path, name: str) -> None:
    import torch

    folder = folder_of(tmp_path / name, name, weights=True)
    opened_in, found = opened(source_of(folder, dims=dims_in(SIZES[name])), tmp_path)
    assert [notice.code for notice in found.notices if notice.code in ("W_WEIGHTS_DRAWN", "W_NO_REFERENCE")] == []
    (given,) = found.spec.inputs
    assert given.sized(1)[0] == found.batch == 2
    if given.dtype == "int64":
        assert given.fill == Integers(0, 40)
    weights, inputs = safetensors.read(weights_file(opened_in)), safetensors.read(inputs_file(opened_in, "inputs"))
    model = HuggingFace.implementation(found, opened_in, "torch").build(weights)
    with torch.inference_mode():
        answers = model(**{key: torch.tensor(array) for key, array in inputs.items()})
    reference = safetensors.read(reference_file(opened_in, "inputs"))
    assert found.spec.outputs[0].name == "logits"
    for tensor, answer in zip(found.spec.outputs, answers, strict=True):
        np.testing.assert_allclose(answer.numpy(), reference[tensor.name], rtol=1e-3, atol=1e-4)
    for framework in ("onnx", "jax"):
        assert not found.routes[framework].why_not


@pytest.mark.slow
@pytest.mark.usefixtures("_transformers")
def test_weights_are_read_from_safetensors_or_drawn_alike_each_time(tmp_path: Path) -> None:
    read = folder_of(tmp_path / "read", "bert", weights=True)
    drawn = folder_of(tmp_path / "drawn", "bert")
    hashes = {}
    for name, path in (("read", read), ("drawn", drawn), ("again", drawn / "config.json")):
        folder, found = opened(source_of(path, dims=dims_in(SIZES["bert"])), tmp_path)
        hashes[name] = hash_of(safetensors.read(weights_file(folder)))
        assert ("W_WEIGHTS_DRAWN" in [each.code for each in found.notices]) == (name != "read")
    assert hashes["drawn"] == hashes["again"] != hashes["read"]
    stored = safetensors.read(read / "model.safetensors")
    held = safetensors.read(weights_file(opened(source_of(read, dims=dims_in(SIZES["bert"])), tmp_path)[0]))
    assert set(stored) == set(held)
    for name in stored:
        np.testing.assert_array_equal(stored[name], held[name])


@pytest.mark.slow
@pytest.mark.usefixtures("_transformers")
def test_further_inputs_are_those_that_are_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "m", "bert")
    shapes = shapes_in("input_ids:2x6,attention_mask:2x6,token_type_ids:2x6")
    opened_in, found = opened(source_of(folder, shapes=shapes), tmp_path)
    fills = {each.name: each.fill for each in found.spec.inputs}
    expected = {"input_ids": Integers(0, 40), "attention_mask": Integers(0, 2, required=False)}
    expected |= {"token_type_ids": Integers(0, 2)}
    assert fills == expected
    assert set(safetensors.read(inputs_file(opened_in, "unseen-1"))) == set(expected)
    own = np.arange(12).reshape(2, 6)
    np.savez(tmp_path / "own.npz", input_ids=own)
    opened_in, _ = opened(source_of(folder, inputs=str(tmp_path / "own.npz")), tmp_path)
    np.testing.assert_array_equal(safetensors.read(inputs_file(opened_in, "inputs"))["input_ids"], own)


@pytest.mark.usefixtures("_transformers")
@pytest.mark.parametrize("shapes", ["", "input_ids:2x6", "input_ids:2x6,decoder_input_ids:2x3"])
def test_an_encoder_with_a_decoder_takes_tokens_for_both(tmp_path: Path, shapes: str) -> None:
    module, _ = module_of(LocalModel(source_of(folder_of(tmp_path / "m", "t5"))), with_weights=False)
    dims = () if shapes else dims_in("batch=2,sequence=6")
    tensors, fills = example_inputs(module, source_of(tmp_path / "m", dims=dims, shapes=shapes_in(shapes)))
    assert {name: tuple(each.shape) for name, each in tensors.items()} == {
        "input_ids": (2, 6),
        "decoder_input_ids": (2, 3) if "decoder" in shapes else (2, 6),
    }
    assert fills["decoder_input_ids"] == Integers(0, 40)


@pytest.mark.usefixtures("_transformers")
@pytest.mark.parametrize(
    ("changes", "bindings", "code"),
    [
        ({}, {}, "E_MODEL_DIMENSIONS"),
        ({}, {"dims": dims_in("batch=2,sequences=6")}, "E_MODEL_DIMENSIONS"),
        ({}, {"shapes": shapes_in("input_ids:2x6,pixels:2x6")}, "E_SHAPES"),
        ({"architectures": ["NoSuchModel"]}, {"dims": dims_in("batch=2,sequence=6")}, "E_SOURCE"),
        ({"model_type": "no-such-type"}, {"dims": dims_in("batch=2,sequence=6")}, "E_SOURCE"),
        ({"auto_map": {"AutoModel": "theirs.Model"}}, {"dims": dims_in("batch=2,sequence=6")}, "E_SOURCE_TRUST"),
    ],
)
def test_what_cannot_be_opened_is_refused(
    tmp_path: Path, changes: dict[str, Any], bindings: dict[str, Any], code: str
) -> None:
    with pytest.raises(FairlapError) as refused:
        opened(source_of(folder_of(tmp_path / "m", "bert", **changes), **bindings), tmp_path)
    assert refused.value.code == code


@pytest.mark.usefixtures("_transformers")
def test_code_of_a_folder_runs_only_with_trust(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "m", "bert", auto_map={"AutoModelForSequenceClassification": "theirs.Theirs"})
    ran = tmp_path / "ran"
    (folder / "theirs.py").write_text(
        f"from transformers import BertForSequenceClassification\n\nopen({str(ran)!r}, 'w').close()\n\n\n"
        "class Theirs(BertForSequenceClassification):\n    pass\n"
    )
    with pytest.raises(FairlapError) as refused:
        opened(source_of(folder, dims=dims_in(SIZES["bert"])), tmp_path)
    assert refused.value.code == "E_SOURCE_TRUST"
    assert not ran.exists()


def test_a_pickle_of_weights_is_not_read_without_trust(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "m", "bert")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": 1}))
    with pytest.raises(FairlapError) as refused:
        LocalModel(source_of(folder)).weights()
    assert refused.value.code == "E_SOURCE_TRUST"
    assert LocalModel(source_of(folder, trust=True)).weights() == "pickle"


class _Harmful:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return eval, ("__import__('pathlib').Path('ran').touch()",)


@pytest.mark.usefixtures("_transformers")
def test_with_trust_a_pickle_gives_weights_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    folder = folder_of(tmp_path / "m", "gpt2", weights=True)
    stored = {name: np.array(array) for name, array in safetensors.read(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    source = source_of(folder, dims=dims_in(SIZES["gpt2"]), trust=True)
    torch.save({name: torch.tensor(array) for name, array in stored.items()}, folder / "pytorch_model.bin")
    module, drawn = module_of(LocalModel(source), with_weights=True)
    assert drawn == ""
    held = module.state_dict()
    for name, array in stored.items():
        np.testing.assert_array_equal(held[name].numpy(), array)
    torch.save({"weight": _Harmful()}, folder / "pytorch_model.bin")
    with pytest.raises(FairlapError) as refused:
        module_of(LocalModel(source), with_weights=True)
    assert refused.value.code == "E_SOURCE"
    assert not (tmp_path / "ran").exists()


def test_nothing_is_fetched_and_a_broken_configuration_is_one_line(tmp_path: Path) -> None:
    for name in ("bert-base-uncased", "m/config.json"):
        with pytest.raises(FairlapError) as refused:
            LocalModel(source_of(tmp_path / name))
        assert refused.value.code == "E_SOURCE"
    (tmp_path / "config.json").write_text("[1")
    with pytest.raises(FairlapError) as refused:
        LocalModel(source_of(tmp_path / "config.json")).config()
    assert refused.value.code == "E_SOURCE"
    assert "\n" not in str(refused.value)
