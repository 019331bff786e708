"""T5 answers: its encoder reads a prompt once, and its decoder writes one token after another through a cache."""
