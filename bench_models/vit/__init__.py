"""Vision transformers with patches of 16 pixels, as published with ViT and DeiT."""
