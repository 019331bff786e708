"""A saved weight has another shape than the model's."""

SIDES = {"": ((19, 17), (13, 17)), "onnx": ([(19, 17), "323", "1292"], [(13, 17), "221", "884"])}
CLASH = (19, 13)
OPERATORS = ()
PART = {"torch": "weight", "keras": "named", "onnx": "weight", "tensorflow": "named"}
ABSENT = {"jax": "nothing holds the shape that a weight should have"}


def numpy():
    import numpy as np

    weight = np.zeros((19, 17))
    weight[...] = np.zeros((13, 17))  # mistake
    return weight


def torch(compiled):
    import torch

    model = torch.nn.Linear(17, 19, bias=False)
    model.load_state_dict({"weight": torch.zeros(13, 17)})  # mistake
    return compiled(model)(torch.zeros(2, 17))


def tensorflow(compiled):
    import tensorflow as tf

    weight = tf.Variable(tf.zeros((19, 17)), name="named")

    @compiled
    def load(saved):
        weight.assign(saved)  # mistake
        return weight + 0

    return load(tf.zeros((13, 17)))


def keras():
    import keras
    import numpy as np

    layer = keras.layers.Dense(17, use_bias=False, name="named")
    layer.build((None, 19))
    layer.set_weights([np.zeros((13, 17))])  # mistake
    return layer(keras.ops.zeros((2, 19)))


def onnx(run):
    from onnx import ModelProto

    from fairlap.scenarios.mistakes.planted.onnx_files import graph, node, zeros

    nodes = [node("MatMul", ["x", "weight"], ["y"], "product")]
    model = ModelProto.FromString(graph(nodes, {"x": (2, 19)}, {"weight": zeros(13, 17)}))
    model.graph.initializer[0].dims[0] = 19  # mistake
    return run(model.SerializeToString(), {"x": zeros(2, 19)})
