"""Several models for one task raced on the same labelled data, and which one to take."""
