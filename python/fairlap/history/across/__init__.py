"""Runs of different machines, prices and environments side by side. They are described, never ranked as one race."""
