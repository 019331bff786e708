"""What a race asks of a process that is trained to a score, and what it makes of a request."""
