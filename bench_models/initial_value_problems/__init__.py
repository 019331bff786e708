"""Shared code of differential equations. Each problem has its own folder, with its rates in ``spec.py``."""
