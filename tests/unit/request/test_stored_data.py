"""``data:FOLDER`` with its settings: read, refused, and part of what defines a work."""

from __future__ import annotations

import pytest
from fairlap.errors import InvalidRequest
from fairlap.request.fields.data.stored_data import StoredData, stored_data_in
from fairlap.request.fields.source import Source, path_parts, with_paths
from fairlap.request.work import Work


def test_settings_follow_the_path() -> None:
    found = stored_data_in("data:a b/photos:batch=64:size=96x128:type=float32:cache=cold")
    assert found == StoredData("a b/photos", 64, (96, 128), "float32", "cold", given=("batch", "size", "type", "cache"))


def test_one_number_is_a_square_and_colons_of_the_path_are_its_own() -> None:
    assert stored_data_in("data:/mnt/c:d/x=1/photos:size=64").size == (64, 64)
    assert stored_data_in("data:/mnt/c:d/x=1/photos:size=64").path == "/mnt/c:d/x=1/photos"


@pytest.mark.parametrize(
    "text",
    [
        *("data:", "data:x:batch=0", "data:x:batch=1.5", "data:x:size=0", "data:x:size=9x", "data:x:type=int8"),
        *("data:x:cache=hot", "data:x:bach=4", "data:x:batch=4:batch=4"),
    ],
)
def test_wrong_settings_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        stored_data_in(text)
    assert refused.value.code == "E_DATA"


def test_a_work_is_defined_by_content_and_settings_and_not_by_the_place() -> None:
    def work(path: str, digest: str = "1") -> Work:
        place, settings = path_parts(path)[1:]
        source = Source(path, f"data:{place}{settings}", "/", files=((place, digest),))
        return Work(path, 22, source=source)

    assert work("data:/a/photos:cache=cold").id == work("data:/b/photos:cache=cold").id
    assert work("data:/a/photos:cache=cold").id != work("data:/a/photos").id
    assert work("data:/a/photos").id != work("data:/a/photos", "2").id


def test_moving_the_data_keeps_their_settings() -> None:
    moved = with_paths(Source("data:a:batch=8", "data:/x/a:batch=8"), lambda path: path.replace("/x", "/y"))
    assert moved.path == "data:/y/a:batch=8"
