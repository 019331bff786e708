"""A small part of Open Images, as it is published."""

from __future__ import annotations

import io
import json
from pathlib import Path

SIDE = 16
CLASSES = ["Car", "Wheel", "Dog", "Animal", "Carnivore", "Cat", "Vehicle"]
CAR, WHEEL, DOG, ANIMAL, CARNIVORE, CAT, VEHICLE = range(len(CLASSES))
HIERARCHY = {
    "LabelName": "/m/entity",
    "Subcategory": [
        {
            "LabelName": "/m/animal",
            "Subcategory": [
                {"LabelName": "/m/carnivore", "Subcategory": [{"LabelName": "/m/dog"}, {"LabelName": "/m/cat"}]},
                {"LabelName": "/m/bird"},  # which has no boxes
            ],
        },
        {"LabelName": "/m/vehicle", "Subcategory": [{"LabelName": "/m/car", "Part": [{"LabelName": "/m/wheel"}]}]},
    ],
}
BOXES = """ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside
a,xclick,/m/dog,1,0.25,0.5,0.25,0.75,0,0,0,0,0
a,xclick,/m/wheel,1,0,0.125,0,0.125,0,0,0,0,0
b,xclick,/m/car,1,0.5,1,0,1,0,0,1,0,0
"""
VERIFIED_LABELS = """ImageID,Source,LabelName,Confidence
a,verification,/m/dog,1
a,verification,/m/vehicle,0
c,verification,/m/carnivore,0
c,verification,/m/tree,1
b,verification,/m/car,1
"""


def open_images(root: Path) -> Path:
    """As the validation part is published; the photo ``c`` has no boxes."""
    from PIL import Image

    (root / "validation").mkdir()
    for name in "abc":
        file = io.BytesIO()
        Image.new("RGB", (SIDE, SIDE)).save(file, "JPEG")
        (root / "validation" / f"{name}.jpg").write_bytes(file.getvalue())
    (root / "class-descriptions-boxable.csv").write_text("".join(f"/m/{each.lower()},{each}\n" for each in CLASSES))
    (root / "bbox_labels_600_hierarchy.json").write_text(json.dumps(HIERARCHY))
    (root / "validation-annotations-human-imagelabels-boxable.csv").write_text(VERIFIED_LABELS)
    path = root / "validation-annotations-bbox.csv"
    path.write_text(BOXES)
    return path
