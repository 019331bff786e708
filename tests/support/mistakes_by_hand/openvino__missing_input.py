import io

import numpy as np
import openvino
from onnx import TensorProto, helper

x, mask = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3)) for name in ("x", "mask"))
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
graph = helper.make_graph([helper.make_node("Mul", ["x", "mask"], ["y"], "masked")], "g", [x, mask], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
core = openvino.Core()
compiled = core.compile_model(core.read_model(io.BytesIO(model.SerializeToString())), "CPU")
print(compiled({"x": np.zeros((2, 3), np.float32)})[0])  # mistake
