"""A small residual net with normalisation by the batch, for MNIST's images."""
