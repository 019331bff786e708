"""Callables that cheat, one idea in each file, and honest ones of every kind: who is ranked without being trusted."""
