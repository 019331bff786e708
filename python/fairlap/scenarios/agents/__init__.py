"""Agents that learn to act, until their mean return reaches a score."""
