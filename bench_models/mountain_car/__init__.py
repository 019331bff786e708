"""A car in a valley that cannot climb out without swinging."""
