"""A small GPT that learns the next character of a text."""
