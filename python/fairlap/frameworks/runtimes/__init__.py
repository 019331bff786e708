"""Runtimes, which run the files of models, and train none."""
