"""Contestants on a GPU, by framework."""
