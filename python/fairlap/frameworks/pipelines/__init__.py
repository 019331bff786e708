"""Input pipelines as contestants: each reads data on disk as its documentation shows."""
