"""Every pipeline that does less or other work than it should is found, by what is wrong; and no honest one is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import stored_data
from fairlap.frameworks.adapter_parts.passes.look import OtherItems
from fairlap.frameworks.adapter_parts.passes.passes import PassDone, Passes
from fairlap.frameworks.contract import Settings
from fairlap.frameworks.pipelines.loop import Loop
from fairlap.models.sources.stored_items.finding import stored_items
from fairlap.models.sources.stored_items.reading import reference_items
from fairlap.models.sources.stored_items.stored_items import StoredItems, pass_inputs
from fairlap.request.fields.data.stored_data import stored_data_in
from wrong_pipelines import WrongPipeline

ITEMS = 22


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredItems, Path]:
    folder = tmp_path_factory.mktemp("passes")
    items = stored_items(stored_data_in(f"data:{stored_data.image_folder(folder / 'photos')}:batch=4:size=32"))
    reference_items(items).write(folder)
    return items, folder


def call(opened: tuple[StoredItems, Path], pipeline: Loop, *, looked_at: bool, **wanted: str) -> PassDone:
    items, folder = opened
    variant = wanted.pop("variant", "")
    found = pipeline.open(items, Settings(threads=1, variant=variant, options=wanted))
    passes = Passes(items, folder, found.batches, found.array, found.parts)
    return passes.bind(pass_inputs(7, looked_at=looked_at))()


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_plain_loop_yields_every_item_once(opened: tuple[StoredItems, Path], looked_at: bool) -> None:
    assert call(opened, Loop(), looked_at=looked_at) == PassDone(7, ITEMS, looked_at)


def test_so_does_one_with_threads(opened: tuple[StoredItems, Path]) -> None:
    assert call(opened, Loop(), looked_at=True, workers="3", prefetch="1").items == ITEMS


SEEN_IN_EVERY_PASS = {
    "drop-last": "last batch dropped",
    "twice": "number of items",
    "smaller": "form of items",
    "undecoded": "form of items",
    "large-batches": "size of batches",
    "another-type": "form of items",
}
LOOKED_AT = {"repeat": "repeated", "wrong-label": "label", "nearest": "pixels"}


@pytest.mark.parametrize("variant", SEEN_IN_EVERY_PASS)
@pytest.mark.parametrize("looked_at", [False, True])
def test_what_counts_and_shapes_show_is_found_in_every_pass(
    opened: tuple[StoredItems, Path], variant: str, looked_at: bool
) -> None:
    with pytest.raises(OtherItems) as found:
        call(opened, WrongPipeline(), looked_at=looked_at, variant=variant)
    assert (found.value.fault, found.value.reported) == (SEEN_IN_EVERY_PASS[variant], "E_OUTPUT")


@pytest.mark.parametrize("variant", LOOKED_AT)
def test_what_pixels_and_labels_show_is_found_in_a_pass_that_is_looked_at(
    opened: tuple[StoredItems, Path], variant: str
) -> None:
    assert call(opened, WrongPipeline(), looked_at=False, variant=variant).items == ITEMS
    with pytest.raises(OtherItems) as found:
        call(opened, WrongPipeline(), looked_at=True, variant=variant)
    assert found.value.fault == LOOKED_AT[variant]


def test_rows_are_compared_byte_for_byte(tmp_path: Path) -> None:
    items = stored_items(stored_data_in(f"data:{stored_data.rows(tmp_path / 'rows')}:batch=4"))
    reference_items(items).write(tmp_path)
    opened = items, tmp_path
    assert call(opened, Loop(), looked_at=True).items == ITEMS
    for variant in ("repeat", "wrong-label"):
        with pytest.raises(OtherItems) as found:
            call(opened, WrongPipeline(), looked_at=True, variant=variant)
        assert found.value.fault == LOOKED_AT[variant]


def test_passes_whose_files_are_mapped_are_reported_as_not_cold(tmp_path: Path) -> None:
    data = stored_data.rows(tmp_path / "rows", items=256, size=4096)
    items = stored_items(stored_data_in(f"data:{data}:batch=64:cache=cold"))
    reference_items(items).write(tmp_path)
    found = Loop().open(items, Settings(threads=1))
    passes = Passes(items, tmp_path, found.batches, found.array)
    held = np.load(data / "features.npy", mmap_mode="r")
    assert np.isfinite(held).all()  # now its pages are mapped
    passes.bind(pass_inputs(7))()
    assert [notice.code for notice in passes.notices()] == ["W_PAGE_CACHE"]
    assert len(passes.newest_ns(1)) == 1
    assert passes.newest_ns(1)[0] > 0
