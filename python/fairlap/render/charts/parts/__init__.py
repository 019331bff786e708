"""What charts are made of: colours, labels, tables, libraries, files."""
