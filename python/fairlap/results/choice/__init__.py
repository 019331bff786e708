"""Which of several models to take for one task: what is shown between candidates, and what to recommend."""
