"""Machines of a cluster: what they are, and programs of fairlap's that run on them."""
