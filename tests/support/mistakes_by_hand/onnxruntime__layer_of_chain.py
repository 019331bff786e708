import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

layers = [
    helper.make_node("MatMul", ["x", "w1"], ["y1"], "first"),
    helper.make_node("MatMul", ["y1", "w2"], ["y2"], "second"),  # mistake
    helper.make_node("MatMul", ["y2", "w3"], ["y"], "third"),
]
shapes = {"w1": (17, 19), "w2": (13, 23), "w3": (23, 5)}
weights = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in shapes.items()]
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 17))
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
graph = helper.make_graph(layers, "g", [x], [y], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
session.run(None, {"x": np.zeros((4, 17), np.float32)})
