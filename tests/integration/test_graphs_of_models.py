"""Models that are one graph give what the same network gives elsewhere, with the same weights.

That is in Keras, in transformers, or written by hand in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
from fairlap.models.checks.differentiation import gradients
from fairlap.models.checks.losses import loss_of_frames
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
    shared = ("lm_head", "embed_tokens")  # tables that are another one
    assert all(torch.is_tensor(model.get_buffer(name)) for name in missing if not any(each in name for each in shared))
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


def t5_of_transformers(transformers: Any, torch: Any, work: Any, **settings: Any) -> Any:
    names = {"shared.weight": "shared.weight", **({"lm_head.weight": "lm_head.weight"} if settings["gated"] else {})}
    layers, letters = settings["num_layers"], {"query": "q", "key": "k", "value": "v", "output": "o"}
    for stack in ("encoder", "decoder"):
        first = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        names |= {f"{stack}.nearness": first, f"{stack}.norm.weight": f"{stack}.final_layer_norm.weight"}
        parts = [("self", "SelfAttention"), *([("cross", "EncDecAttention")] if stack == "decoder" else [])]
        for number in range(layers):
            ours, theirs = f"{stack}.layers.{number}", f"{stack}.block.{number}.layer"
            for place, (one, other) in enumerate(parts):
                names |= {
                    f"{ours}.{one}.{part}.weight": f"{theirs}.{place}.{other}.{letter}.weight"
                    for part, letter in letters.items()
                }
                names[f"{ours}.{one}.norm.weight"] = f"{theirs}.{place}.layer_norm.weight"
            last = f"{theirs}.{len(parts)}"
            names[f"{ours}.norm.weight"] = f"{last}.layer_norm.weight"
            gated = {"first": "wi_0", "up": "wi_1", "second": "wo"}
            dense = gated if settings["gated"] else {"first": "wi", "second": "wo"}
            names |= {f"{ours}.{a}.weight": f"{last}.DenseReluDense.{b}.weight" for a, b in dense.items()}
    assert set(names) == set(work.weights)
    kind = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False} if settings.pop("gated") else {}
    config = transformers.T5Config(**settings, **kind, d_kv=64, dropout_rate=0.0)
    model = transformers.T5ForConditionalGeneration(config)
    if kind:  # some releases of transformers share the table all the same
        model.lm_head = torch.nn.Linear(config.d_model, config.vocab_size, bias=False)
    return loaded(torch, model, work.weights, names).double()


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("t5:tiny", {"d_model": 256, "num_layers": 4, "num_heads": 4, "d_ff": 1024, "gated": False}),
        ("t5:small-v1_1", {"d_model": 512, "num_layers": 8, "num_heads": 6, "d_ff": 1024, "gated": True}),
    ],
)
def test_t5_is_that_of_transformers_and_its_work_is_what_pytorch_counts(
    model: str, settings: dict[str, Any], torch_and_transformers: tuple[Any, Any]
) -> None:
    torch, transformers = torch_and_transformers
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    work = workload_of(model, batch=1)
    theirs = t5_of_transformers(transformers, torch, work, **settings)
    assert sum(each.numel() for each in theirs.parameters()) == work.spec.parameters
    given = {name: torch.tensor(array.astype(np.int64)) for name, array in work.inputs.items()}
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:  # by products
        found = theirs(**given).logits.numpy()
    np.testing.assert_allclose(found, answer_of(work), rtol=1e-5, atol=1e-5)
    assert counter.get_total_flops() == pytest.approx(2e9 * (work.spec.gmacs_per_item or 0.0))


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("t5_generate:tiny", {"d_model": 256, "num_layers": 4, "num_heads": 4, "d_ff": 1024, "gated": False}),
        ("t5_generate:small", {"d_model": 512, "num_layers": 6, "num_heads": 8, "d_ff": 2048, "gated": False}),
    ],
)
def test_steps_of_t5_through_the_cache_of_transformers_are_those_of_the_reference(
    model: str, settings: dict[str, Any], torch_and_transformers: tuple[Any, Any]
) -> None:
    torch, transformers = torch_and_transformers
    work = workload_of(model, batch=1)
    assert sum(array.size for array in work.weights.values()) == work.spec.parameters
    theirs = t5_of_transformers(transformers, torch, work, **settings)
    prompt, given = (torch.tensor(array.astype(np.int64)) for array in work.inputs.values())
    found, cache = [], None
    with torch.no_grad():
        encoded = theirs.get_encoder()(input_ids=prompt)
        for token in (torch.zeros_like(prompt[:, :1]), *given.split(1, dim=1)):
            step = theirs(encoder_outputs=encoded, decoder_input_ids=token, past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            found.append(step.logits[:, -1].numpy())
    logits = reference_answers(work)["logits"]
    np.testing.assert_allclose(np.stack(found, 1), logits, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "network"),
    [("conformer:small", "networks_by_hand:Conformer"), ("unet3d:base", "image_networks_by_hand:Unet3d")],
)
def test_a_network_has_as_many_parameters_as_its_modules(model: str, network: str) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")

    work = workload_of(model, batch=1)
    assert resolve_name(network)(work.weights).parameters() == work.spec.parameters


def test_boxes_of_ssdlite_are_those_that_pytorch_code_makes_of_its_predictions() -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    from fairlap.bench_models.ssdlite.stages import decoded
    from image_networks_by_hand import corners_of_ssd

    predictions = np.random.default_rng(0).normal(0, 2, (1, 3234, 95)).astype(np.float32)
    found, theirs = decoded({"predictions": predictions}), torch.tensor(predictions[0])
    np.testing.assert_allclose(found["corners"], corners_of_ssd(theirs).numpy(), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found["scores"], theirs[:, 4:].softmax(-1)[:, 1:].numpy(), rtol=1e-5, atol=1e-7)


def test_frameworks_have_the_loss_of_frames_of_the_reference_and_its_slopes() -> None:
    from fairlap.frameworks.adapter_parts.losses import jax_losses, tensorflow_losses, torch_losses

    torch, jax, tf = (
        pytest.importorskip(name, reason="`make test` installs it and runs this")
        for name in ("torch", "jax", "tensorflow")
    )
    logits = np.random.default_rng(0).normal(0, 2, (4, 9, 6)).astype(np.float32)
    labels = np.array([[1, 1, 2, 0], [3, 5, 3, 4], [2, 0, 0, 0], [0, 0, 0, 0]], np.int32)
    expected, wide = gradients(lambda held: loss_of_frames(held["logits"], labels), {"logits": logits.astype(float)})
    in_torch = torch.tensor(logits, requires_grad=True)
    loss = torch_losses.loss_of_batch(lambda: (in_torch,), "ctc")(torch.tensor(labels).long())
    of_jax = jax.value_and_grad(lambda each: jax_losses.loss_of("ctc", each, labels))(logits)
    with tf.GradientTape() as tape:
        tape.watch(in_tensorflow := tf.constant(logits))
        of_tensorflow = tensorflow_losses.loss_of("ctc", in_tensorflow, tf.constant(labels))
    slopes = tape.gradient(of_tensorflow, in_tensorflow)
    found = {
        "torch": (loss.item(), torch.autograd.grad(loss, in_torch)[0].numpy()),
        "jax": (float(of_jax[0]), np.asarray(of_jax[1])),
        "tensorflow": (float(of_tensorflow), slopes.numpy()),
    }
    for name, (value, own) in found.items():
        assert value == pytest.approx(expected, rel=1e-5), name
        np.testing.assert_allclose(own, wide["logits"], atol=1e-6, err_msg=name)


COUNTED = (
    "clip",
    "conformer:tiny",
    "ssdlite",
    "tcn",
    "unet",
    "unet3d:tiny",
    "yolov8:n",
)  # by layers that PyTorch counts


@pytest.mark.parametrize(
    ("model", "network"),
    [
        ("conformer:tiny", "networks_by_hand:Conformer"),
        ("ssdlite", "image_networks_by_hand:SsdLite"),
        ("gnn", "networks_by_hand:Gnn"),
        ("tcn", "networks_by_hand:Tcn"),
        ("lstm_forecaster", "networks_by_hand:Lstm"),
        ("clip", "networks_by_hand:Clip"),
        ("unet", "image_networks_by_hand:Unet"),
        ("unet3d:tiny", "image_networks_by_hand:Unet3d"),
        ("yolov8:n", "image_networks_by_hand:Yolo"),
    ],
)
def test_networks_are_those_that_plain_pytorch_makes(model: str, network: str) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    work = workload_of(model, batch=1 if model == "ssdlite" else 2)
    given = [
        torch.tensor(array).double() if array.dtype.kind == "f" else torch.tensor(array)
        for array in work.inputs.values()
    ]
    called = resolve_name(network)(work.weights)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:  # attention is counted by products
        found = called(*given).detach().numpy()
    if model in COUNTED:
        assert counter.get_total_flops() == pytest.approx(work.batch * 2e9 * (work.spec.gmacs_per_item or 0.0))
    # A graph holds the small numbers in its normalisations in float32.
    np.testing.assert_allclose(found, answer_of(work), rtol=1e-6, atol=1e-6)


def test_ddim_is_its_paper_s_loop_around_the_network_of_unet() -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    from image_networks_by_hand import Unet, denoised

    work = workload_of("ddim", batch=1)
    betas = np.linspace(0.00085**0.5, 0.012**0.5, 1000) ** 2  # those of Stable Diffusion
    latent, text = (torch.tensor(work.inputs[name]).double() for name in ("latent", "text"))
    found = denoised(Unet(work.weights), latent, text, np.cumprod(1 - betas).tolist())
    np.testing.assert_allclose(found.numpy(), answer_of(work), rtol=1e-4, atol=1e-4)
