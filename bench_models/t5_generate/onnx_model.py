"""The answer as two ONNX graphs: the encoder, which also gives the first token, and a step of the decoder."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.graphs.attention import rms_norm
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.bench_models.graphs.onnx_model import node_of
from fairlap.bench_models.onnx_graph import model_with
from fairlap.bench_models.t5.spec import BUCKETS, EPSILON, HEAD, IDS
from fairlap.bench_models.t5_generate.spec import LAYERS, PROMPT, TOKENS, names_of
from fairlap.bench_models.t5_generate.steps import LAST_FIRST
from fairlap.models.arrays import Arrays
from fairlap.models.spec import BATCH, Normal, Tensor
from onnx import TensorProto, helper

PAST, CROSS = "past_", "cross_"
COUNT, HEADS = LAYERS.count, LAYERS.heads.queries


def build(weights: Arrays, batch: int) -> Any:
    """Build a step: a token of each item after any number of others, whose keys and values go in and come out."""
    past, cross, grown = names_of(PAST), names_of(CROSS), names_of("")
    net = Net(
        Tensor("input_ids", (BATCH, 1), IDS, "int32"),
        *(Tensor(name, (BATCH, HEADS, TOKENS - 1, HEAD)) for name in past),
        *(Tensor(name, (BATCH, HEADS, PROMPT, HEAD)) for name in cross),
    )
    hidden, nearness = LAYERS.embedded(net, net.input("input_ids")), _nearness(net)
    for layer in range(COUNT):
        name, both = f"decoder.layers.{layer}", slice(2 * layer, 2 * layer + 2)
        normed = rms_norm(net, f"{name}.self.norm", hidden, EPSILON)
        pair = [
            net.add("Concat", net.input(before), new, shape=(HEADS, TOKENS, HEAD), gives=gives, axis=2)
            for before, new, gives in zip(past[both], _pair(net, f"{name}.self", normed), grown[both], strict=True)
        ]
        hidden = net.sum(hidden, _attention(net, f"{name}.self", normed, pair, nearness))
        normed = rms_norm(net, f"{name}.cross.norm", hidden, EPSILON)
        of_prompt = [net.input(each) for each in cross[both]]
        hidden = net.sum(hidden, _attention(net, f"{name}.cross", normed, of_prompt))
        hidden = net.sum(hidden, LAYERS.perceptron(net, name, rms_norm(net, f"{name}.norm", hidden, EPSILON)))
    net.output(LAYERS.scored(net, rms_norm(net, "decoder.norm", hidden, EPSILON)), "logits")
    return _model(
        net,
        weights,
        [_tokens("input_ids", batch, 1), *_arrays(past, batch, "past"), *_arrays(cross, batch, PROMPT)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None), *_arrays(grown, batch, "positions")],
    )


def build_encoder(weights: Arrays, batch: int) -> Any:
    net = Net(Tensor("input_ids", (BATCH, PROMPT), IDS, "int32"))
    tokens = net.input("input_ids")
    first = net.add("Gather", tokens, net.constant((1,), lambda: (0,), "int64"), shape=(1,), axis=1)
    net.add("Mul", first, net.constant((), lambda: 0, "int32"), shape=(1,), gives="start")
    read = LAYERS.stack(net, "encoder", LAYERS.embedded(net, tokens))
    names = names_of(CROSS)
    for layer in range(COUNT):
        pair = _pair(net, f"decoder.layers.{layer}.cross", read)
        for name, value in zip(names[2 * layer : 2 * layer + 2], pair, strict=True):
            net.add("Identity", value, shape=value.shape, gives=name)
    outputs = [_tokens("start", batch, 1), *_arrays(names, batch, PROMPT)]
    return _model(net, weights, [_tokens("input_ids", batch, PROMPT)], outputs)


def _nearness(net: Net) -> Value:
    """Make the numbers for how far back each token is, of those that are known and the new one."""
    sizes = net.add("Shape", net.input(names_of(PAST)[0]), shape=(4,))
    known = net.add("Gather", sizes, net.constant((1,), lambda: (2,), "int64"), shape=(1,), axis=0)
    begin = net.add("Sub", net.constant((1,), lambda: (TOKENS - 1,), "int64"), known, shape=(1,))
    end = net.constant((1,), lambda: (TOKENS,), "int64")
    places = net.add("Slice", net.constant((TOKENS,), lambda: LAST_FIRST, "int64"), begin, end, shape=(TOKENS,))
    table = net.weight("decoder.nearness", (BUCKETS, HEADS), Normal(0.5))
    found = net.add("Gather", table, places, shape=(TOKENS, HEADS), axis=0)
    by_head = net.add("Transpose", found, shape=(HEADS, TOKENS), perm=[1, 0])
    return net.add("Unsqueeze", by_head, net.constant((1,), lambda: (1,), "int64"), shape=(HEADS, 1, TOKENS))


def _pair(net: Net, name: str, seen: Value) -> list[Value]:
    return [_by_head(net, net.linear(f"{name}.{part}", seen, HEADS * HEAD, bias=False)) for part in ("key", "value")]


def _by_head(net: Net, value: Value) -> Value:
    return net.transpose(net.reshape(value, value.shape[0], HEADS, HEAD), 2, 1, 3)


def _attention(net: Net, name: str, normed: Value, pair: list[Value], nearness: Value | None = None) -> Value:
    query = _by_head(net, net.linear(f"{name}.query", normed, HEADS * HEAD, bias=False))
    keys, values = pair
    scores = net.matrix_product(query, net.transpose(keys, 1, 3, 2), (HEADS, 1, keys.shape[1]))
    scores = scores if nearness is None else net.sum(scores, nearness)
    attended = net.matrix_product(net.elementwise("Softmax", scores, axis=-1), values, (HEADS, 1, HEAD))
    joined = net.reshape(net.transpose(attended, 2, 1, 3), 1, HEADS * HEAD)
    return net.linear(f"{name}.output", joined, normed.shape[-1], bias=False)


def _tokens(name: str, batch: int, count: int) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.INT32, [batch, count])


def _arrays(names: list[str], batch: int, count: int | str) -> list[Any]:
    shape = [batch, HEADS, count, HEAD]
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]


def _model(net: Net, weights: Arrays, inputs: list[Any], outputs: list[Any]) -> Any:
    own = {each.name: weights[each.name] for each in net.weights}
    return model_with("t5_generate", [node_of(each) for each in net.steps], inputs, outputs, own)
