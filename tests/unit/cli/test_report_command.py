import builtins
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fairlap.cli import cli
from fairlap.errors import FairlapError, InvalidRequest, NotAvailable
from fairlap.render.charts.libraries import altair, vl_convert
from fairlap.store.run_file import save_run
from runs_to_show import run_of


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_run(tmp_path / "race.json", run_of(batches=(4,)))
    return tmp_path / "race.json"


def run(*words: object) -> tuple[int, str, BaseException | None]:
    result = CliRunner().invoke(cli, ["report", *map(str, words)])
    return result.exit_code, result.output, result.exception


def test_a_saved_run_becomes_a_page_and_pictures(saved: Path) -> None:
    html, charts = saved.with_name("race.html"), saved.with_name("charts")
    code, output, _ = run(saved, "-o", html, "--charts", charts, "--baseline", "jax", "--price", "1.2/h")
    assert code == 0
    assert "against jax" in html.read_text()
    assert str(html) in output
    assert (charts / "mlp-infer-fp32-batch-4-cost.svg").exists()


def test_nothing_to_write_is_said(saved: Path) -> None:
    _, _, error = run(saved)
    assert isinstance(error, InvalidRequest)
    assert error.code == "E_REQUEST"


def test_a_folder_that_is_not_there_is_said_before_anything_is_made(saved: Path) -> None:
    _, _, error = run(saved, "-o", saved.with_name("nowhere") / "race.html")
    assert isinstance(error, InvalidRequest)
    assert error.code == "E_FILE"


def test_rubbish_instead_of_a_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "race.json").write_bytes(b"\xff\x00{")
    _, _, error = run(tmp_path / "race.json", "-o", tmp_path / "race.html")
    assert isinstance(error, InvalidRequest)
    assert "is not a run file" in str(error)
    assert not (tmp_path / "race.html").exists()


def test_a_full_disk_leaves_the_page_of_before(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    html = saved.with_name("race.html")
    html.write_text("before")

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    _, _, error = run(saved, "-o", html)
    assert isinstance(error, FairlapError)
    assert "No space left on device" in str(error)
    assert html.read_bytes() == b"before"
    assert {path.name for path in saved.parent.iterdir()} == {"race.json", "race.html"}


@pytest.mark.parametrize("needed", [altair, vl_convert])
def test_what_is_not_installed_is_said_with_the_command_that_installs_it(
    needed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name in ("altair", "vl_convert"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotAvailable, match=r"pip install 'fairlap\[report\]'"):
        needed()
