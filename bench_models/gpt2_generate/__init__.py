"""GPT-2 small answers a prompt: it reads it, and writes one token after another through a cache."""
