"""Two towers in the shape of CLIP: one for images, one for texts."""
