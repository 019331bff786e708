"""Live readings of this machine's sensors: in the terminal, as lines, as Prometheus metrics."""
