"""Comparisons of callables as text, files and charts, and within a notebook."""
