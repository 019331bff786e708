"""A neural network as the rates of differential equations, with given weights."""
