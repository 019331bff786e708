"""A call with next to nothing to compute: its time is the overhead of a call. It has no weights, so no gradients."""
