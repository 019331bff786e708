"""The parts of this machine: what they are, what they count, and the most that they can do."""
