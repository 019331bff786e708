"""No model: whatever the contestant's own callable does."""
