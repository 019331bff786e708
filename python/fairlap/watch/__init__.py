"""What this machine's sensors say right now: in the terminal, as lines, as Prometheus metrics."""
