"""A model of one multiplication, for workers that are tested without a real framework."""
