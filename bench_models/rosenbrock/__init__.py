"""Rosenbrock's function of a hundred numbers."""
