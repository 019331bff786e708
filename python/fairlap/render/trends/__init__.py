"""The history of a model as files."""
