"""Connections to servers, and functions in their place."""
