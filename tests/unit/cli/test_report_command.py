import builtins
from pathlib import Path
from typing import Any

import pytest
from command_line import output, refusal
from fairlap.errors import NotAvailable
from fairlap.render.charts.libraries import altair, vl_convert
from fairlap.store.run_file import save_run
from runs_to_show import run_of


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_run(tmp_path / "race.json", run_of(batches=(4,)))
    return tmp_path / "race.json"


def test_a_saved_run_becomes_a_page_and_pictures(saved: Path) -> None:
    html, charts = saved.with_name("race.html"), saved.with_name("charts")
    written = output("report", saved, "-o", html, "--charts", charts, "--baseline", "jax", "--price", "1.2/h")
    assert str(html) in written
    assert "against jax" in html.read_text()
    assert (charts / "mlp-infer-fp32-batch-4-cost.svg").exists()


def test_what_cannot_be_written_or_read_is_refused(saved: Path) -> None:
    rubbish, page = saved.with_name("rubbish.json"), saved.with_name("race.html")
    rubbish.write_bytes(b"\xff\x00{")
    assert refusal("report", saved).code == "E_REQUEST"
    assert refusal("report", saved, "-o", saved.with_name("nowhere") / "race.html").code == "E_FILE"
    assert refusal("report", rubbish, "-o", page).code == "E_RUN_FILE"
    assert not page.exists()


def test_a_full_disk_leaves_the_page_of_before(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    html = saved.with_name("race.html")
    html.write_text("before")

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert refusal("report", saved, "-o", html).code == "E_FILE"
    assert html.read_bytes() == b"before"
    assert {path.name for path in saved.parent.iterdir()} == {"race.json", "race.html"}


@pytest.mark.parametrize("needed", [altair, vl_convert])
def test_what_is_not_installed_is_reported_with_the_command_that_installs_it(
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
