"""Whether this machine is fit to measure on: one file for each kind of finding."""
