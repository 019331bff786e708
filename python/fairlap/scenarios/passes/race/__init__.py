"""What a race of input pipelines asks of a process, and what it makes of a request."""
