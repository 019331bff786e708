"""Whether this machine is fit to measure on: one file per subject of checks."""
