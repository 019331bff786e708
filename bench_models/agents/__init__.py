"""Agents that learn to act in the environments: the algorithm of each once, and its implementations in libraries."""
