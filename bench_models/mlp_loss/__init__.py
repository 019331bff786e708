"""The loss of a small perceptron as a function of its parameters."""
