"""Environments of reinforcement learning, by the steps that a contestant takes in a second."""
