"""Where a layer comes to rest, differentiated through its steps."""
