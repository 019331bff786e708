"""GPT-2 small reads a prompt: the logits after its last token, and the keys and values that decoding goes on from."""
