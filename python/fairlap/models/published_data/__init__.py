"""Data sets in the files in which they are published: images, photos with boxes, and texts."""
