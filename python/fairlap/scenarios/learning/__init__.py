"""Training until a score on held-out items is reached."""
