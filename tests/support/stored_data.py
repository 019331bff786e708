"""Small data sets on disk: textured images that a wrong resize changes, as a folder, a tar and Parquet; and rows."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 3
HEIGHT, WIDTH = 96, 128


def image(number: int) -> np.ndarray:
    """Each of other colours, with fine stripes that alias without antialiasing."""
    rng = np.random.default_rng(number)
    coarse = np.kron(rng.uniform(40, 215, (6, 8, 3)), np.ones((HEIGHT // 6, WIDTH // 8, 1)))
    stripes = 40.0 * (-1.0) ** np.arange(WIDTH)[None, :, None]
    return np.clip(coarse + stripes, 0, 255).astype(np.uint8)


def jpeg(number: int) -> bytes:
    written = io.BytesIO()
    Image.fromarray(image(number)).save(written, "JPEG", quality=95, subsampling=0)
    return written.getvalue()


def image_folder(folder: Path, items: int = 22) -> Path:
    for number in range(items):
        of_class = folder / f"class-{number % CLASSES}"
        of_class.mkdir(parents=True, exist_ok=True)
        (of_class / f"{number:05}.jpg").write_bytes(jpeg(number))
    return folder


def tar(path: Path, items: int = 22) -> Path:
    """As WebDataset writes it: the image and the label of a sample are neighbours."""
    with tarfile.open(path, "w") as archive:
        for number in range(items):
            for suffix, content in (("jpg", jpeg(number)), ("cls", str(number % CLASSES).encode())):
                member = tarfile.TarInfo(f"{number:05}.{suffix}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def parquet(path: Path, items: int = 22) -> Path:
    """As Hugging Face's datasets are stored: a struct of bytes and path, in several row groups."""
    import pyarrow as arrow
    from pyarrow import parquet as written

    images = [{"bytes": jpeg(number), "path": None} for number in range(items)]
    kind = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    columns = {"image": arrow.array(images, kind), "label": [number % CLASSES for number in range(items)]}
    written.write_table(arrow.table(columns), path, row_group_size=5)
    return path


def rows(folder: Path, items: int = 22, size: int = 48) -> Path:
    folder.mkdir(parents=True)
    drawn = np.random.default_rng(0)
    np.save(folder / "features.npy", drawn.standard_normal((items, size)).astype(np.float32))
    np.save(folder / "labels.npy", np.arange(items) % CLASSES)
    return folder
