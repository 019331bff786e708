"""GPT-2 in every framework, shared by its prefill, its decoding step and a small one that learns characters."""
