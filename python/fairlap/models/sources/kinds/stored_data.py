"""``data:FOLDER``: data on disk, over which input pipelines race. A call of one is a whole pass over the data.

It is a model without weights, whose input is the seed of the order and whose output counts what came. Whether each item
came, once and rightly decoded, is found out in a pass of each process that is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fairlap.models.sources.contract import Bundle, Opened, Proof, Route, SourceKind
from fairlap.models.sources.stored_items.finding import stored_items
from fairlap.models.sources.stored_items.reading import reference_items
from fairlap.models.sources.stored_items.stored_items import (
    LOOKED_AT,
    PASS,
    StoredItems,
    pass_inputs,
    read_index,
    write_index,
)
from fairlap.models.spec import Integers, Tensor, Tolerance
from fairlap.request.fields.data.stored_data import PREFIX_OF_DATA, stored_data_in
from fairlap.request.fields.source import Source, path_parts

IMPLEMENTATION = "pipeline"
_MODELS = {"torch": "dataloader", "tensorflow": "tfdata"}
_EXACT = Tolerance(-1.0, 0.25, 0.0)
_MOST_SEED = 2**20  # exact in float32


class StoredDataKind(SourceKind):
    title = "data on disk"
    no_gradients = "passes over data have none"
    one_hash = True

    @classmethod
    def recognises(cls, text: str) -> bool:
        return text.startswith(PREFIX_OF_DATA)

    @classmethod
    def files(cls, source: Source) -> tuple[Path, ...]:
        return (Path(path_parts(source.path)[1]),)

    @classmethod
    def readable(cls, source: Source) -> tuple[Path, ...]:
        return cls.files(source)

    @classmethod
    def check(cls, source: Source) -> None:
        data = stored_data_in(source.path)
        if not data.path.lower().endswith(".parquet"):  # its library starts threads, which no sandbox can follow
            stored_items(data)

    @classmethod
    def open(cls, source: Source, folder: Path) -> Opened:
        items = stored_items(stored_data_in(source.path))
        reference_items(items).write(folder)
        write_index(folder, items)
        names = {name: Route(why_not=f"it runs models; race its {other}") for name, other in _MODELS.items()}
        return Opened(
            inputs=(
                Tensor(PASS, (1,), Integers(0, _MOST_SEED), "int64"),
                Tensor(LOOKED_AT, (1,), Integers(0, 2), "int64"),
            ),
            outputs=(PASS,),
            output_types={PASS: "float32"},
            weights={},
            forward=lambda _, inputs: _counted(inputs, items),
            routes={**names, IMPLEMENTATION: Route(holds_weights=False)},
            reference="every item, decoded and resized with Pillow" if items.has_pixels else "the bytes of every row",
            proof=lambda seeds: _proof(seeds, items),
            precisions=("fp32",),
            items=items.items,
        )

    @classmethod
    def implementation(cls, bundle: Bundle, folder: Path, framework: str) -> StoredItems:
        return read_index(folder)


def _proof(seeds: Mapping[str, int], items: StoredItems) -> Proof:
    sets = {which: pass_inputs(seed % _MOST_SEED) for which, seed in seeds.items()}
    return Proof(sets, {which: _counted(own, items) for which, own in sets.items()}, {"fp32": {PASS: _EXACT}})


def _counted(inputs: Mapping[str, np.ndarray], items: StoredItems) -> dict[str, np.ndarray]:
    return {PASS: np.array([float(inputs[PASS][0]), float(items.items)])}


KIND = StoredDataKind
