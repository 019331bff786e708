"""Scores of parts of the data of a metric: groups of its items, and all items corrupted."""
