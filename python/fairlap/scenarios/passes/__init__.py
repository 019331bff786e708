"""Whole passes of input pipelines over data on disk."""
