"""Where a layer comes to rest, differentiated by the implicit function theorem."""
