"""Shared code of functions whose derivatives race. Each function has its own folder, with its ``spec.py``."""
