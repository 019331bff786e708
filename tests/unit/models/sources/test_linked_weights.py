"""A .keras file whose weights lie in another file of the machine is refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fairlap.errors import FairlapError
from keras_files import lookup
from onnx_files import opened, source_of

pytestmark = pytest.mark.slow


def first_dataset(group: Any) -> tuple[Any, str]:
    import h5py  # type: ignore[import-untyped,unused-ignore]

    for name, each in group.items():
        if isinstance(each, h5py.Dataset):
            return group, name
        if isinstance(each, h5py.Group) and len(each) and (found := first_dataset(each))[1]:
            return found
    return group, ""


@pytest.mark.parametrize("how", ["external data", "an external link", "a soft link"])
def test_weights_in_another_file_are_refused(tmp_path: Path, how: str) -> None:
    import h5py  # type: ignore[import-untyped,unused-ignore]

    plain = lookup(tmp_path / "plain.keras")
    secret = tmp_path / "secret.bin"
    secret.write_bytes(bytes(range(256)) * 100)
    with zipfile.ZipFile(plain) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    (weights,) = (name for name in members if name.endswith(".h5"))
    file = io.BytesIO(members[weights])
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = [1.0]
    with h5py.File(file, "r+") as opened_weights:
        group, name = first_dataset(opened_weights)
        shape, kind = group[name].shape, group[name].dtype
        del group[name]
        if how == "external data":
            group.create_dataset(name, shape, kind, external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
        elif how == "an external link":
            group[name] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/x")
        else:
            group[name] = h5py.SoftLink("/no/such/place")
    members[weights] = file.getvalue()
    evil = tmp_path / "evil.keras"
    with zipfile.ZipFile(evil, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    with pytest.raises(FairlapError) as refused:
        opened(source_of(evil, batch=2), tmp_path)
    assert refused.value.code.startswith("E_SOURCE")
    assert len(str(refused.value).splitlines()) == 1
