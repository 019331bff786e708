"""A choice between models as a document and as a chart."""
