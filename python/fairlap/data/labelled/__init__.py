"""Labelled data from which models learn."""
