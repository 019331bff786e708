"""Shapes that do not fit, or fit by accident."""
