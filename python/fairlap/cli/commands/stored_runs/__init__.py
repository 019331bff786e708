"""Commands that read runs from the store or from files."""
