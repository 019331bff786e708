"""A decoder as those of Llama, small enough for every machine: it reads a prompt of 128 tokens."""
