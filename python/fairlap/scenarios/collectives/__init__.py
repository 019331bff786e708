"""Collective operations alone, without a model."""
