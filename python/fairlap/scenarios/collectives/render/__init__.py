"""Collective operations as text, files and a chart."""
