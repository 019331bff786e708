"""Decoders with Llama 2's layers, in the sizes of llama2.c's story models."""
