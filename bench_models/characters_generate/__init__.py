"""The small GPT of `characters` answers a prompt, character by character; small enough to try generation out."""
