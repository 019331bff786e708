"""What a race of load adds to a row."""
