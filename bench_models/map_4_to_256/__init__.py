"""A small network with few inputs and many outputs, where forward mode is cheap."""
