"""Callables over axes as text, files and a chart."""
