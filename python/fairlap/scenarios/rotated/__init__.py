"""Calls of one process on several inputs in turn, such as sizes or tolerances. Scenarios use it; it is none itself."""
