"""The store of runs, and run files."""
