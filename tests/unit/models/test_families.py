"""A family is one folder with sizes, and each size is a model like any other."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.names import GROUP, family_of, is_function, sizes_of_family, workload_names
from fairlap.models.registry import find
from fairlap.models.sources.registry import kind_of
from fairlap.race.planning.works_from_request import data_seeds_asked, works_asked
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from installed_package import install_package

FORMER = {
    "t5_generate": "t5_generate:tiny",
    "vit_tiny": "vit:tiny",
    "llama_260k": "llama:260k",
    "resnet50": "resnet:50",
}


def test_each_size_is_listed_and_the_family_itself_is_not() -> None:
    names = workload_names()
    for family in ("vit", "llama", "resnet", "yolov8", "t5", "t5_generate", "conformer", "unet3d"):
        assert {f"{family}:{size}" for size in sizes_of_family(family)} == {
            name for name in names if name.partition(":")[0] == family
        }


@pytest.mark.parametrize(("former", "name"), FORMER.items())
def test_a_model_is_found_by_its_former_name_and_has_the_name_of_its_size(former: str, name: str) -> None:
    assert find(former) == find(name)
    assert find(former).spec.name == name
    assert former not in workload_names()


@pytest.mark.parametrize("name", ["vit", "vit:huge"])
def test_a_size_that_there_is_not_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(InvalidRequest, match="vit:base, vit:small, vit:tiny"):
        find(name)


@pytest.mark.parametrize(("name", "near"), [("vit:huge", "vit:tiny"), ("mlp:small", "did you mean mlp?")])
def test_a_size_that_there_is_not_is_no_module_unless_one_of_that_name_is_at_hand(
    name: str, near: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert kind_of(name) is None
    with pytest.raises(InvalidRequest, match=re.escape(near)):
        find(name)
    (tmp_path / f"{name.partition(':')[0]}.py").touch()
    assert kind_of(name) is not None


def test_larger_sizes_have_more_parameters_and_more_work() -> None:
    # T5 1.1 has more tables than T5 of its size, and the same work.
    for family in ("vit", "llama", "yolov8", "resnet", "t5", "t5_generate", "conformer", "unet3d"):
        specs = [find(f"{family}:{size}").spec for size in sizes_of_family(family)]
        for smaller, larger in itertools.pairwise(specs):
            assert smaller.parameters < larger.parameters
            assert (smaller.gmacs_per_item or 0.0) < (larger.gmacs_per_item or 0.0) or "1_1" in larger.name


def test_a_size_is_no_function_of_the_users_and_has_several_sets_of_weights() -> None:
    assert kind_of("vit:tiny") is None
    assert not is_function("vit:tiny")
    assert is_function("mypkg:build")
    assert family_of("vit:tiny") == "vit"
    assert [family_of(name) for name in ("mlp", "vit", "vit:huge", "mypkg:build")] == [""] * 4
    request = RaceRequest(models=("vit:tiny", "mlp"), contestants=Contestants("torch"))
    assert data_seeds_asked(request) == data_seeds_asked(RaceRequest(models=("mlp",), contestants=Contestants("torch")))


def test_the_works_of_a_former_name_are_those_of_the_size() -> None:
    asked = [
        works_asked(RaceRequest(models=(name,), contestants=Contestants("torch")), (), print)
        for name in ("llama_260k", "llama:260k")
    ]
    [[(one, _)], [(other, _)]] = asked
    assert one.id == other.id


def test_listing_reads_the_sizes_and_imports_no_model() -> None:
    program = (
        "import sys; from fairlap.models.names import workload_names; assert 'vit:tiny' in workload_names();"
        "assert not [name for name in sys.modules if name.startswith('fairlap.bench_models.')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_package_brings_sizes_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(tmp_path, monkeypatch, "theirs", {GROUP: {"net-small": "their_package:small"}})
    module = ModuleType("their_package.spec")
    module.in_size = lambda size: SimpleNamespace(SPEC=find("gemm").spec, size=size)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_package", ModuleType("their_package"))
    monkeypatch.setitem(sys.modules, "their_package.spec", module)
    assert find("net-small").package == "their_package:small"
