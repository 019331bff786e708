"""The logarithm of a sum of exponentials."""
