"""Packages that are installed for contestants: where they come from, how they are built, and in which Python."""
