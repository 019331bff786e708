"""Models that are one graph give what the same network gives elsewhere, with the same weights.

That is in Keras, in transformers, or written by hand in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from fairlap.models.reference import reference_answers
from workloads_of_models import workload_of

pytestmark = [pytest.mark.slow, pytest.mark.sanitized, pytest.mark.timeout(300)]

Weights = Mapping[str, Any]
Layer = Callable[[Any], Any]


def answer_of(work: Any) -> np.ndarray:
    [answer] = reference_answers(work).values()
    return answer


def kernel(weights: Weights, name: str) -> list[np.ndarray]:
    """Of a Keras layer: the axes of a convolution in its order, and the bias."""
    array = weights[f"{name}.weight"]
    return [array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T, weights[f"{name}.bias"]]


class KerasLayers:
    """Layers with weights by name, as the published code of MLPerf Tiny's networks calls them."""

    def __init__(self, weights: Weights) -> None:
        self.keras = pytest.importorskip("keras", reason="`make test` installs it and runs this")
        self._weights = weights

    def convolution(self, name: str, size: tuple[int, int], stride: int = 1) -> Layer:
        arrays = kernel(self._weights, name)
        layer = self.keras.layers.Conv2D(arrays[0].shape[-1], size, strides=stride, padding="same")
        return self._with(layer, arrays)

    def each_channel(self, name: str, stride: int = 1) -> Layer:
        array, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        layer = self.keras.layers.DepthwiseConv2D((3, 3), strides=stride, padding="same")
        return self._with(layer, [array.transpose(2, 3, 0, 1), bias])

    def rectified(self, name: str, value: Any) -> Any:
        return self.keras.ops.relu(self.normalised(name)(value))

    def normalised(self, name: str) -> Layer:
        parts = ("weight", "bias", "running_mean", "running_var")
        return self._with(self.keras.layers.BatchNormalization(), [self._weights[f"{name}.{part}"] for part in parts])

    def dense(self, name: str) -> Layer:
        arrays = kernel(self._weights, name)
        return self._with(self.keras.layers.Dense(arrays[0].shape[-1]), arrays)

    def _with(self, layer: Any, arrays: list[np.ndarray]) -> Layer:
        def call(value: Any) -> Any:
            layer.build(value.shape)
            layer.set_weights(arrays)
            return layer(value)

        return call


def resnet8(layers: KerasLayers, image: Any) -> Any:
    hidden = layers.rectified("norm", layers.convolution("stem", (3, 3))(image))
    for number, stride in enumerate((1, 2, 2)):
        name = f"stacks.{number}"
        first = layers.rectified(f"{name}.norm1", layers.convolution(f"{name}.first", (3, 3), stride)(hidden))
        second = layers.normalised(f"{name}.norm2")(layers.convolution(f"{name}.second", (3, 3))(first))
        beside = hidden if number == 0 else layers.convolution(f"{name}.beside", (1, 1), stride)(hidden)
        hidden = layers.keras.ops.relu(beside + second)
    return layers.dense("head")(layers.keras.ops.mean(hidden, axis=(1, 2)))


def separable(strides: tuple[int, ...], stem: tuple[int, int]) -> Callable[[KerasLayers, Any], Any]:
    def network(layers: KerasLayers, image: Any) -> Any:
        hidden = layers.rectified("norm", layers.convolution("stem", stem, 2)(image))
        for number, stride in enumerate(strides):
            name = f"blocks.{number}"
            hidden = layers.rectified(f"{name}.norm1", layers.each_channel(f"{name}.each", stride)(hidden))
            hidden = layers.rectified(f"{name}.norm2", layers.convolution(f"{name}.mixed", (1, 1))(hidden))
        return layers.dense("head")(layers.keras.ops.mean(hidden, axis=(1, 2)))

    return network


def autoencoder(layers: KerasLayers, sound: Any) -> Any:
    hidden = sound
    for number in range(9):
        hidden = layers.rectified(f"norms.{number}", layers.dense(f"layers.{number}")(hidden))
    return layers.dense("head")(hidden)


@pytest.mark.parametrize(
    ("model", "network"),
    [
        ("resnet8", resnet8),
        ("ds_cnn", separable((1, 1, 1, 1), (10, 4))),
        ("mobilenet_v1_025", separable((1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1), (3, 3))),
        ("anomaly_autoencoder", autoencoder),
    ],
)
def test_the_networks_of_mlperf_tiny_are_those_that_keras_layers_make(
    model: str, network: Callable[[KerasLayers, Any], Any]
) -> None:
    work = workload_of(model)
    [given] = work.inputs.values()
    image = given.transpose(0, 2, 3, 1) if given.ndim == 4 else given
    found = np.asarray(network(KerasLayers(work.weights), image))
    assert found == pytest.approx(answer_of(work), rel=1e-4, abs=1e-4)


@pytest.fixture
def torch_and_transformers() -> tuple[Any, Any]:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    return torch, pytest.importorskip("transformers", reason="`make test` installs it and runs this")


def loaded(torch: Any, model: Any, weights: Weights, names: Mapping[str, str]) -> Any:
    """Fill a module; each of our names has its part there."""
    state = {theirs: torch.tensor(weights[ours]) for ours, theirs in names.items()}
    missing, unknown = model.load_state_dict(state, strict=False)
    assert not unknown
    assert all(torch.is_tensor(model.get_buffer(name)) for name in missing if "lm_head" not in name)
    return model.eval()


def test_vit_is_that_of_transformers(torch_and_transformers: tuple[Any, Any]) -> None:
    torch, transformers = torch_and_transformers
    work = workload_of("vit:tiny", batch=1)
    names = {"class_token": "vit.embeddings.cls_token", "positions": "vit.embeddings.position_embeddings"}
    parts = {"patches": "vit.embeddings.patch_embeddings.projection", "norm": "vit.layernorm", "head": "classifier"}
    for number in range(12):
        ours, theirs = f"layers.{number}", f"vit.layers.{number}"
        parts |= {
            f"{ours}.attention.{part}": f"{theirs}.attention.{part[0]}_proj"
            for part in ("query", "key", "value", "output")
        }
        parts |= {
            f"{ours}.norm1": f"{theirs}.layernorm_before",
            f"{ours}.norm2": f"{theirs}.layernorm_after",
            f"{ours}.first": f"{theirs}.mlp.fc1",
            f"{ours}.second": f"{theirs}.mlp.fc2",
        }
    names |= {f"{a}.{end}": f"{b}.{end}" for a, b in parts.items() for end in ("weight", "bias")}
    assert set(names) == set(work.weights)
    settings = {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "layer_norm_eps": 1e-6}
    config = transformers.ViTConfig(**settings, num_labels=1000)
    model = loaded(torch, transformers.ViTForImageClassification(config), work.weights, names)
    with torch.no_grad():
        found = model(torch.tensor(work.inputs["image"])).logits.numpy()
    assert found == pytest.approx(answer_of(work), rel=1e-3, abs=1e-4)


def test_llama_is_that_of_transformers(torch_and_transformers: tuple[Any, Any]) -> None:
    torch, transformers = torch_and_transformers
    work = workload_of("llama:260k", batch=2)
    names = {"embedding.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight"}
    for number in range(5):
        ours, theirs = f"layers.{number}", f"model.layers.{number}"
        names |= {
            f"{ours}.attention.query.weight": f"{theirs}.self_attn.q_proj.weight",
            f"{ours}.attention.key.weight": f"{theirs}.self_attn.k_proj.weight",
            f"{ours}.attention.value.weight": f"{theirs}.self_attn.v_proj.weight",
            f"{ours}.attention.output.weight": f"{theirs}.self_attn.o_proj.weight",
            f"{ours}.norm1.weight": f"{theirs}.input_layernorm.weight",
            f"{ours}.norm2.weight": f"{theirs}.post_attention_layernorm.weight",
        }
        names |= {f"{ours}.{part}.weight": f"{theirs}.mlp.{part}_proj.weight" for part in ("gate", "up", "down")}
    assert set(names) == set(work.weights)
    config = transformers.LlamaConfig(
        hidden_size=64,
        intermediate_size=172,
        num_hidden_layers=5,
        num_attention_heads=8,
        num_key_value_heads=4,
        vocab_size=512,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
    )
    model = loaded(torch, transformers.LlamaForCausalLM(config), work.weights, names)
    model.tie_weights()
    with torch.no_grad():
        found = model(torch.tensor(work.inputs["tokens"].astype(np.int64))).logits.numpy()
    assert found == pytest.approx(answer_of(work), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    ("model", "network"),
    [
        ("gnn", "Gnn"),
        ("tcn", "Tcn"),
        ("lstm_forecaster", "Lstm"),
        ("clip", "Clip"),
        ("unet", "Unet"),
        ("yolov8:n", "Yolo"),
    ],
)
def test_networks_are_those_that_plain_pytorch_makes(model: str, network: str) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    import networks_by_hand

    work = workload_of(model)
    given = [
        torch.tensor(array).double() if array.dtype.kind == "f" else torch.tensor(array)
        for array in work.inputs.values()
    ]
    found = getattr(networks_by_hand, network)(work.weights)(*given).numpy()
    # A graph holds the small numbers in its normalisations in float32.
    np.testing.assert_allclose(found, answer_of(work), rtol=1e-6, atol=1e-6)


def test_ddim_is_its_paper_s_loop_around_the_network_of_unet() -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    from networks_by_hand import Unet, denoised

    work = workload_of("ddim", batch=1)
    betas = np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2  # those of Stable Diffusion
    latent, text = (torch.tensor(work.inputs[name]).double() for name in ("latent", "text"))
    found = denoised(Unet(work.weights), latent, text, np.cumprod(1 - betas).tolist())
    np.testing.assert_allclose(found.numpy(), answer_of(work), rtol=1e-4, atol=1e-4)
