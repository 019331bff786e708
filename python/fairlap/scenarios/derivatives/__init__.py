"""Derivatives of functions, by the time of a call."""
