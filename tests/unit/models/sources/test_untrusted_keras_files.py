"""A .keras file names functions, classes and files: none of them runs code, fetches, unpickles or reads a file."""

from __future__ import annotations

import base64
import io
import json
import marshal
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fairlap.errors import FairlapError
from keras_files import lookup
from machine_marks import needs_package
from onnx_files import opened, source_of

pytestmark = [pytest.mark.slow, needs_package("keras")]


class _Touches:
    def __init__(self, target: Path) -> None:
        self.target = str(target)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.target, "w")


def _named(module: str, class_name: str, /, **config: Any) -> dict[str, Any]:
    return {"module": module, "class_name": class_name, "config": config, "registered_name": class_name}


def _function(module: str, name: str) -> dict[str, Any]:
    return {"module": module, "class_name": "function", "config": name, "registered_name": name}


def _code(target: Path) -> dict[str, Any]:
    code = compile(f"lambda x: (open({str(target)!r}, 'w'), x)[1]", "x", "eval").co_consts[0]
    encoded = base64.b64encode(marshal.dumps(code)).decode()
    return {"class_name": "__lambda__", "config": {"code": encoded, "defaults": None, "closure": None}}


def _layer(class_name: str, /, **config: Any) -> dict[str, Any]:
    return _named("keras.layers", class_name, name="dropout", **config)


def _in_a_model(layer: dict[str, Any]) -> dict[str, Any]:
    begin = _named("keras.layers", "InputLayer", batch_shape=[None, 8], dtype="float32", name="begin")
    return _named("keras", "Sequential", name="dropout", layers=[begin, layer])


def _files(target: Path, secret: Path) -> dict[str, list[dict[str, Any]]]:
    """Make what takes the place of a layer; of two, the first is the activation of another one."""
    lambda_ = _layer("Lambda", function=_code(target))
    pickled = base64.b64encode(pickle.dumps(_Touches(target))).decode()
    fetch = _layer(
        "Lambda",
        function=_function("keras.utils", "get_file"),
        arguments={"origin": secret.as_uri(), "cache_dir": str(target.parent), "fname": target.name},
    )
    return {
        "code within a model within it": [_in_a_model(lambda_)],
        "code as an activation": [_layer("Activation", activation=_code(target))],
        "a function of another module": [_layer("Activation", activation=_function("os", "mkdir"))],
        "a function that is built in": [_layer("Activation", activation=_function("builtins", "open"))],
        "a class of another module": [_named("pathlib", "Path", name="dropout")],
        "a function that fetches": [fetch],
        "a pickle": [_layer("TorchModuleWrapper", module=pickled)],
        "a switch for code": [_named("keras.config", "enable_unsafe_deserialization"), lambda_],
        "a switch for code as a function": [_function("keras.config", "enable_unsafe_deserialization"), lambda_],
        "words in another file": [_layer("StringLookup", vocabulary=str(secret))],
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lookup(tmp_path_factory.mktemp("keras") / "plain.keras")


def _with_layers(plain: Path, file: Path, replaced: list[dict[str, Any]]) -> Path:
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            if member.filename == "config.json":
                config = json.loads(content)
                layers = config["config"]["layers"]
                place = next(number for number, each in enumerate(layers) if each["class_name"] == "Dropout")
                layers[place] |= replaced[-1]
                layers[place]["config"]["name"] = layers[place]["name"]
                if len(replaced) > 1:
                    layers[-1]["config"]["activation"] = replaced[0]
                    layers.insert(0, layers.pop())
                content = json.dumps(config).encode()
            new.writestr(member.filename, content)
    return file


@pytest.mark.parametrize("what", _files(Path("/x"), Path("/y")))
def test_what_a_file_names_does_not_run(plain: Path, tmp_path: Path, what: str) -> None:
    target, secret = tmp_path / "target", tmp_path / "secret"
    secret.write_text("one\ntwo\n")
    file = _with_layers(plain, tmp_path / "evil.keras", _files(target, secret)[what])
    with pytest.raises(FairlapError) as refused:
        opened(source_of(file, batch=2), tmp_path)
    assert refused.value.code in ("E_SOURCE", "E_SOURCE_TRUST")
    assert len(str(refused.value).splitlines()) == 1
    assert "one" not in str(refused.value).split()
    assert not target.exists()


def test_the_plain_file_opens(plain: Path, tmp_path: Path) -> None:
    opened(source_of(plain, batch=2), tmp_path)


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
