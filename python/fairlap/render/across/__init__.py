"""Runs side by side, as text, Markdown, CSV, a page and a chart."""
