"""Recordings with what is said in them, and their features."""
