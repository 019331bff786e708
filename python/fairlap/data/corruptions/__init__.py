"""Images as a camera, a lens, the weather or a file format spoils them, and texts as a hasty typist does."""
