"""What a race from file to answer asks of a process, and what it makes of a request."""
