"""Smaller forms of a model's file: fewer bits, or more zeros."""
