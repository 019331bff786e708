"""The single operations, each with its own folder for its sizes: a module for each framework has them all."""
