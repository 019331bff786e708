"""Batches that native threads read ahead."""
