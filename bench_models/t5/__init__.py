"""Encoder-decoders in the shape of T5, in its own sizes."""
