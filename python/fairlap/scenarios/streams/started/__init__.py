"""Servers and models in processes that fairlap starts, freezes while others have their turn, and ends."""
