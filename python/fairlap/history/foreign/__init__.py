"""Results that other tools measured, as points of a history."""
