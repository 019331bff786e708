"""A plan knows where its modules were found, and by the hash of their files whether they changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan_modules import (
    PlanModule,
    changed_code,
    differing_code,
    modules_of,
    with_modules_then,
)
from fairlap.request.fields.source import Source
from fairlap.request.names import Contestants
from fairlap.request.work import Work

CODE = "import sibling_parts\nfrom . import nothing\ndef sums(): return sibling_parts.total\n"


@dataclass
class Checkout:
    folder: Path
    modules: tuple[PlanModule, ...]


@pytest.fixture
def then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    folder = tmp_path / "then"
    folder.mkdir()
    (folder / "planted_kernels.py").write_text(CODE)
    (folder / "sibling_parts.py").write_text("import math\ntotal = 1\n")
    (folder / "unrelated.py").write_text("")
    monkeypatch.chdir(folder)
    return Checkout(folder, modules_of(Contestants("python:call=planted_kernels.sums,python:call=math.sin"), ()))


def test_it_keeps_the_code_of_a_module_and_of_those_beside_it_that_it_imports_and_no_installed_one(
    then: Checkout,
) -> None:
    [module] = then.modules
    assert (module.name, module.folder) == ("planted_kernels", str(then.folder))
    assert [name for name, _ in module.files] == ["planted_kernels.py", "sibling_parts.py"]
    assert math.__name__ not in {each.name for each in then.modules}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: (folder / "unrelated.py").write_text("1"), None),
        (lambda folder: (folder / "planted_kernels.py").write_text(f"{CODE}#"), "planted_kernels.py"),
        (lambda folder: (folder / "sibling_parts.py").write_text("total = 2"), "sibling_parts.py"),
        (lambda folder: (folder / "sibling_parts.py").unlink(), "sibling_parts.py"),
    ],
)
def test_a_change_of_its_code_is_named(then: Checkout, change: Callable[[Path], object], named: str | None) -> None:
    assert changed_code(then.modules) is None
    change(then.folder)
    found = changed_code(then.modules)
    assert (found is not None) == (named is not None)
    if found is not None:
        assert found.code == "W_CODE_CHANGED"
        assert str(named) in found.text


def test_of_a_plan_that_did_not_record_its_code_nothing_is_said() -> None:
    assert changed_code(()) is None


def test_from_another_folder_it_is_imported_from_where_it_was(
    then: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted_kernels.py").write_text("another")
    names = Contestants("python:call=planted_kernels.sums")
    [name], _, modules = with_modules_then(names, (), then.modules)
    assert name.text == names[0].text
    assert name.framework_options["path"] == str(then.folder)
    assert changed_code(modules) is None
    assert modules_of([name], ()) == modules


def test_a_folder_that_was_named_relative_to_another_one_is_found_again(
    then: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = Contestants("python:call=planted_kernels.sums:path=then")
    modules = modules_of(names, ())
    monkeypatch.chdir("/")
    [name], _, _ = with_modules_then(names, (), modules)
    assert name.framework_options["path"] == str(then.folder)


def test_the_module_of_a_model_is_found_in_its_folder_of_then(
    then: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work("m", 1, source=Source("planted_kernels:sums", "planted_kernels:sums", str(tmp_path)))
    modules = modules_of((), (work,))
    assert [each.name for each in modules] == ["planted_kernels"]
    monkeypatch.chdir(tmp_path)
    _, [found], _ = with_modules_then((), (work,), modules)
    assert found.source is not None
    assert found.source.folder == str(then.folder)


def test_what_is_gone_is_taken_from_the_current_folder_or_refused_by_name(
    then: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = then.folder.rename(tmp_path / "moved")
    names = Contestants("python:call=planted_kernels.sums")
    monkeypatch.chdir(moved)
    found, _, [module] = with_modules_then(names, (), then.modules)
    assert (found, module.folder) == (tuple(names), str(moved))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest) as refused:
        with_modules_then(names, (), then.modules)
    assert refused.value.code == "E_MODULE"
    assert str(then.folder) in str(refused.value)


@pytest.mark.parametrize("name", ["", "a\0b", "../elsewhere", "a/b"])
def test_a_name_of_a_plan_from_elsewhere_that_names_no_module_is_refused(name: str, tmp_path: Path) -> None:
    hostile = PlanModule(name, "", f"{tmp_path}/a\0b", (("x", ""),))
    with pytest.raises(InvalidRequest) as refused:
        with_modules_then((), (), (hostile,))
    assert refused.value.code == "E_MODULE"


def test_only_code_of_modules_that_both_runs_import_differs() -> None:
    before = (
        PlanModule("net", "", "/a", (("net.py", "1"), ("layers.py", "1"))),
        PlanModule("old", "", "/a", (("old.py", "1"),)),
    )
    after = (
        PlanModule("net", "", "/b", (("net.py", "2"), ("layers.py", "1"))),
        PlanModule("new", "", "/b", (("new.py", "1"),)),
    )
    assert differing_code(before, after) == ["net.py"]
    assert differing_code(before, before) == []
