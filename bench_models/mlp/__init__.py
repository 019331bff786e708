"""A small multilayer perceptron, quick enough for tests and small enough that every framework's overhead shows."""
