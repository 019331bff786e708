"""Models that mean the same work in every framework. One folder each; see docs/reference/models.md."""
