"""What a race of solvers asks of a process, and what it makes of a request."""
