"""Models that Python code makes: PyTorch's, JAX's and those of transformers."""
