"""Parts of a request, each with its own syntax."""
