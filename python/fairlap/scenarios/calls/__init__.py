"""Calls in each mode: inference, gradients, steps of training."""
