"""ONNX graphs in fp8: their numbers, the ranges of activations, and the pairs of nodes around products."""
