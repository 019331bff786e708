"""What every server of fairlap has in common: where it listens, which requests it answers, and how long it waits."""
