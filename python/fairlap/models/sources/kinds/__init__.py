"""One module for each kind of source, with its class as ``KIND``."""
