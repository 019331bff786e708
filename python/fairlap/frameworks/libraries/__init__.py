"""Frameworks that hold arrays and differentiate: they infer, and most of them train."""
