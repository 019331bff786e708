"""Rows and results as files: CSV, JSON, Markdown, Parquet, and the formats of other tools."""
