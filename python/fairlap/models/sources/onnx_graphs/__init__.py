"""ONNX graphs of users: their sizes, the ranges of their inputs, their float64 reference and their work."""
