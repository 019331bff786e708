"""The columns of a race of input pipelines."""
