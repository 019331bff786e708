"""Bounds that a user sets: whether one side is slower, or better, by more than is allowed."""
