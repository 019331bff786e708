"""The layers of transformers in every framework."""
