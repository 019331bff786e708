"""Gradients of users' own models: the float64 reference of their training, and proof that they can be trained."""
