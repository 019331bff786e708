"""A small network with many inputs and few outputs, where reverse mode is cheap."""
