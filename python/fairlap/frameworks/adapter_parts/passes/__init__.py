"""Passes of input pipelines over data on disk: what is counted in each, and what is looked at in some."""
