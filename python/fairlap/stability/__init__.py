"""Digits, time and repeatability of each contestant in one table."""
