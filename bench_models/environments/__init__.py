"""Shared code of environments to simulate. Each has its own folder, with its physics in ``spec.py``."""
