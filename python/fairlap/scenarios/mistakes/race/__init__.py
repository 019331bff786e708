"""Run planted mistakes in fresh processes."""
