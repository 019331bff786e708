"""Contestants that run as several ranks, and the operations by which ranks exchange data."""
