"""Callables whose answers are compared: their arguments and answers as arrays, and what is right."""
