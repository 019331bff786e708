"""Conformers that write down speech: attention and convolutions in turn, and a character or none for each frame."""
