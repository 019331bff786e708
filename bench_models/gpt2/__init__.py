"""GPT-2 in every framework, shared by its prefill and its decoding step."""
