"""A small network with as many inputs as outputs."""
