"""GPT-2 small writes one token: a step of the loop after `gpt2_prefill`, with the cache that this left."""
