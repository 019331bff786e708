"""LiteRT files: their graph as objects, their weights, and the same graph in ONNX."""
