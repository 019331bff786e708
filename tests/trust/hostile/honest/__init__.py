"""Honest callables, each kind beside the others that are asked for the same in ``tasks.py``."""
