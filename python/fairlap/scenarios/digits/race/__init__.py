"""What a race of digits asks of a process, and what it makes of a request."""
