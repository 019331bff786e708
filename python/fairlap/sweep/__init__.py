"""Races whose blocks are spread over the machines of a cluster."""
