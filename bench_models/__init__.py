"""Models that mean the same work in every framework. One folder each; see docs/models.md."""
