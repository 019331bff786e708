"""Labelled images in the files in which data sets are published; the published test part is held out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fairlap.data.labelled.items import Items, items_with_classes
from fairlap.models.array_files.stored_rows import changed_rows
from fairlap.models.published_data.finding import Reader
from fairlap.models.published_data.published_images import pixels_of


def published_items(path: Path, read: Reader) -> Items:
    found = read(path)
    images = changed_rows(found.images, pixels_of)
    return replace(items_with_classes({"image": images}, found.labels, path, found.classes), held_out=found.held_out)
