"""Models that are one graph each: ONNX runtimes read it, and the importer brings it into other frameworks."""
