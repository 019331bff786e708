"""What became of planted mistakes as text, files and a chart."""
