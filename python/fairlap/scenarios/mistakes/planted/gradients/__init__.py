"""Gradients, and arrays that are changed in place."""
