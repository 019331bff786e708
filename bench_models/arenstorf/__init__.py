"""Three bodies: a satellite that returns to where it began around the Earth and the Moon."""
