"""Sizes of the files that a user brings, which their loops have too."""

BATCH = 8
WIDTH = 64  # of a token
LENGTHS = {32: 6, 64: 5, 128: 3, 256: 2}  # of sequences, and how many calls of a mix have each
