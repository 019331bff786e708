"""Verdicts about scores: contestants that answered the same items, compared item by item."""
