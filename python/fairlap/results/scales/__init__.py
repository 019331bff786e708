"""Contestants at several scales of one work."""
