"""Models that answer prompts in a process of their own without a server: what a server of them adds shows beside it."""
