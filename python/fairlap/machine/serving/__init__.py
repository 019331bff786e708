"""What every server of fairlap has in common: where it listens, whom it answers, and how long it waits."""
