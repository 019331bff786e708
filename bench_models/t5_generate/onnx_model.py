"""The answer as two ONNX graphs: the encoder, which also gives the first token, and a step of the decoder."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.graphs.attention import rms_norm
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.bench_models.graphs.onnx_model import node_of
from fairlap.bench_models.onnx_graph import model_with
from fairlap.bench_models.t5.spec import BUCKETS, EPSILON, HEAD, IDS, VOCABULARY
from fairlap.bench_models.t5_generate.spec import PROMPT, TOKENS, Answering
from fairlap.bench_models.t5_generate.steps import LAST_FIRST
from fairlap.models.arrays import Arrays
from fairlap.models.spec import BATCH, Normal, Tensor
from onnx import TensorProto, helper

PAST, CROSS = "past_", "cross_"


class Implementation:
    def __init__(self, model: Answering) -> None:
        self._model, self._layers = model, model.layers
        self._heads = model.layers.heads.queries

    def build(self, weights: Arrays, batch: int) -> Any:
        """Build a step: a token of each item after any number of others, whose keys and values go in and come out."""
        past, cross, grown = (self._model.names_of(kind) for kind in (PAST, CROSS, ""))
        net = Net(
            Tensor("input_ids", (BATCH, 1), IDS, "int32"),
            *(Tensor(name, (BATCH, self._heads, TOKENS - 1, HEAD)) for name in past),
            *(Tensor(name, (BATCH, self._heads, PROMPT, HEAD)) for name in cross),
        )
        hidden, nearness = self._layers.embedded(net, net.input("input_ids")), self._nearness(net, past[0])
        for layer in range(self._layers.count):
            name, both = f"decoder.layers.{layer}", slice(2 * layer, 2 * layer + 2)
            normed = rms_norm(net, f"{name}.self.norm", hidden, EPSILON)
            new = self._pair(net, f"{name}.self", normed)
            shape = (self._heads, TOKENS, HEAD)
            pair = [
                net.add("Concat", net.input(before), each, shape=shape, gives=gives, axis=2)
                for before, each, gives in zip(past[both], new, grown[both], strict=True)
            ]
            hidden = net.sum(hidden, self._attention(net, f"{name}.self", normed, pair, nearness))
            normed = rms_norm(net, f"{name}.cross.norm", hidden, EPSILON)
            of_prompt = [net.input(each) for each in cross[both]]
            hidden = net.sum(hidden, self._attention(net, f"{name}.cross", normed, of_prompt))
            normed = rms_norm(net, f"{name}.norm", hidden, EPSILON)
            hidden = net.sum(hidden, self._layers.perceptron(net, name, normed))
        net.output(self._layers.scored(net, rms_norm(net, "decoder.norm", hidden, EPSILON)), "logits")
        inputs = [
            _tokens("input_ids", batch, 1),
            *self._arrays(past, batch, "past"),
            *self._arrays(cross, batch, PROMPT),
        ]
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 1, VOCABULARY])
        return _model(net, weights, inputs, [logits, *self._arrays(grown, batch, "positions")])

    def build_encoder(self, weights: Arrays, batch: int) -> Any:
        net = Net(Tensor("input_ids", (BATCH, PROMPT), IDS, "int32"))
        tokens = net.input("input_ids")
        first = net.add("Gather", tokens, net.constant((1,), lambda: (0,), "int64"), shape=(1,), axis=1)
        net.add("Mul", first, net.constant((), lambda: 0, "int32"), shape=(1,), gives="start")
        read = self._layers.stack(net, "encoder", self._layers.embedded(net, tokens))
        names = self._model.names_of(CROSS)
        for layer in range(self._layers.count):
            pair = self._pair(net, f"decoder.layers.{layer}.cross", read)
            for name, value in zip(names[2 * layer : 2 * layer + 2], pair, strict=True):
                net.add("Identity", value, shape=value.shape, gives=name)
        outputs = [_tokens("start", batch, 1), *self._arrays(names, batch, PROMPT)]
        return _model(net, weights, [_tokens("input_ids", batch, PROMPT)], outputs)

    def _nearness(self, net: Net, past: str) -> Value:
        """Make the numbers for how far back each token is, of those that are known and the new one."""
        sizes = net.add("Shape", net.input(past), shape=(4,))
        known = net.add("Gather", sizes, net.constant((1,), lambda: (2,), "int64"), shape=(1,), axis=0)
        begin = net.add("Sub", net.constant((1,), lambda: (TOKENS - 1,), "int64"), known, shape=(1,))
        end = net.constant((1,), lambda: (TOKENS,), "int64")
        places = net.add("Slice", net.constant((TOKENS,), lambda: LAST_FIRST, "int64"), begin, end, shape=(TOKENS,))
        table = net.weight("decoder.nearness", (BUCKETS, self._heads), Normal(0.5))
        found = net.add("Gather", table, places, shape=(TOKENS, self._heads), axis=0)
        by_head = net.add("Transpose", found, shape=(self._heads, TOKENS), perm=[1, 0])
        axes = net.constant((1,), lambda: (1,), "int64")
        return net.add("Unsqueeze", by_head, axes, shape=(self._heads, 1, TOKENS))

    def _pair(self, net: Net, name: str, seen: Value) -> list[Value]:
        wide = self._heads * HEAD
        return [self._by_head(net, net.linear(f"{name}.{part}", seen, wide, bias=False)) for part in ("key", "value")]

    def _by_head(self, net: Net, value: Value) -> Value:
        return net.transpose(net.reshape(value, value.shape[0], self._heads, HEAD), 2, 1, 3)

    def _attention(self, net: Net, name: str, normed: Value, pair: list[Value], nearness: Value | None = None) -> Value:
        heads = self._heads
        query = self._by_head(net, net.linear(f"{name}.query", normed, heads * HEAD, bias=False))
        keys, values = pair
        scores = net.matrix_product(query, net.transpose(keys, 1, 3, 2), (heads, 1, keys.shape[1]))
        scores = scores if nearness is None else net.sum(scores, nearness)
        attended = net.matrix_product(net.elementwise("Softmax", scores, axis=-1), values, (heads, 1, HEAD))
        joined = net.reshape(net.transpose(attended, 2, 1, 3), 1, heads * HEAD)
        return net.linear(f"{name}.output", joined, normed.shape[-1], bias=False)

    def _arrays(self, names: list[str], batch: int, count: int | str) -> list[Any]:
        shape = [batch, self._heads, count, HEAD]
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]


def _tokens(name: str, batch: int, count: int) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.INT32, [batch, count])


def _model(net: Net, weights: Arrays, inputs: list[Any], outputs: list[Any]) -> Any:
    own = {each.name: weights[each.name] for each in net.weights}
    return model_with("t5_generate", [node_of(each) for each in net.steps], inputs, outputs, own)
