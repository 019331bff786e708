"""Operators that networks are made of."""
