"""Outputs and gradients, compared with the float64 reference."""
