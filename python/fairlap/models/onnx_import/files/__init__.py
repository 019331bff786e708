"""ONNX files as they are read: the model, and data beside it."""
