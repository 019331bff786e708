"""Timers that stand side by side on the same work, each in processes of its own."""
