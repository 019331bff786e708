"""One layer normalisation of the size that transformers have."""
