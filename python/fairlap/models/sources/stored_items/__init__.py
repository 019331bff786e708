"""Items on disk, as input pipelines and their checks read them."""
