"""Answers from file to answer: the functions before a user's model, the model, and those after it."""
