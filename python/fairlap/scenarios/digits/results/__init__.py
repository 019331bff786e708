"""What rows of a race of digits say of answers."""
