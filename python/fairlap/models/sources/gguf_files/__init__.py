"""GGUF files: their header, and their weights as a module of transformers."""
