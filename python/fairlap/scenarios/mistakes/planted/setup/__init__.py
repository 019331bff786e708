"""Devices, saved weights and inputs of a model."""
