"""One matrix product, brought by another package."""
