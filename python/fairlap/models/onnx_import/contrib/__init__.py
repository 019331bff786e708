"""ONNX Runtime's own operators as the standard ones that they stand for."""
