"""Columns of what was learnt."""
