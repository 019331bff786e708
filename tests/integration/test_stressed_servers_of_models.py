"""Real servers beyond capacity, among slow clients and clients that hang up: what each is known to do shows."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.request.fields.streams import Overload
from fairlap.results.row import Row
from fairlap.scenarios.streams.streams_found import ManneredFound
from machine_marks import needs_package, needs_proc
from model_for_servers import model_folder
from stream_races import raced_by_name

pytestmark = [
    *(needs_proc, pytest.mark.slow, pytest.mark.timeout(900)),
    *(needs_package(name) for name in ("torch", "transformers", "httpx", "tokenizers")),
]

TOKENS = 24
LITSERVE_PROGRAM = Path(__file__).parents[1] / "support" / "litserve_program.py"
NEEDS_SERVE = pytest.mark.skipif(find_spec("openai") is None, reason="needs transformers[serving]")
NEEDS_LITSERVE = pytest.mark.skipif(find_spec("litserve") is None, reason="needs litserve")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("served") / "m")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))


def started(kind: str, folder: Path) -> str:
    if kind == "transformers":
        return f"serve:transformers:model={folder}:timeout=10m:ready_within=10m"  # an answer waits for all before it
    words = shlex.join([sys.executable, str(LITSERVE_PROGRAM), str(folder), "{port}"])
    return f'serve:command="{words}":model=m:health=/health'


def stressed(kind: str, folder: Path, **how: Any) -> tuple[Row, Any]:
    """Race one server for one block; return its row and what was found."""
    prompts = folder.parent / "chats.jsonl"
    asked = [{"messages": [{"role": "user", "content": f"Tell story {number}"}]} for number in range(20)]
    prompts.write_text("".join(f"{json.dumps(each)}\n" for each in asked))
    how = {"tokens": TOKENS, "trial": 2.0, **how}
    found = raced_by_name(prompts, started(kind, folder), **how)
    [row], [process] = found.rows, found.run.processes
    assert process.streams is not None, process.message
    print(row.contestant, process.streams.alone_ns, row.scenario_figures, row.code, row.warnings)
    return row, process.streams


@NEEDS_SERVE
def test_a_server_is_shown_to_serve_what_it_answers_until_its_backlog_is_gone(folder: Path) -> None:
    """``transformers serve`` answers one after the other, and refuses none."""
    overload = Overload(15.0, 2.0, watched_s=20.0, band=1.0)
    row, shown = stressed("transformers", folder, rate=0.5, trial=20.0, overload=overload)
    found, stamps = shown.overload, shown.requests
    assert (found.offered, found.failed_share) == (30, 0.0)
    due_ns, last_ns = np.array(stamps.from_ns, float), np.array(stamps.last_ns, float)
    begins_ns = 1e9 * 10 / 0.5
    of_overload = (due_ns >= begins_ns) & (due_ns < begins_ns + 2e9)
    assert np.count_nonzero(of_overload) == 30
    until_ns = last_ns[of_overload].max()
    by_hand = 1e9 * np.count_nonzero((last_ns > begins_ns) & (last_ns <= until_ns)) / (until_ns - begins_ns)
    assert found.served_per_s == pytest.approx(by_hand, rel=0.3)
    assert row.scenario_figures["overload_served_per_s"].value == found.served_per_s


@pytest.mark.parametrize(
    ("kind", "works_on"),
    [pytest.param("transformers", False, marks=NEEDS_SERVE), pytest.param("litserve", True, marks=NEEDS_LITSERVE)],
)
def test_whether_a_server_works_on_for_a_client_that_hung_up(kind: str, works_on: bool, folder: Path) -> None:
    """``transformers serve`` cancels what it generates; LitServe's worker never hears of it.

    On a busy machine single turns showed 0 of the one, and 0.4 to 1.3 of the other.
    """
    _, shown = stressed(kind, folder, rate=1.0, abort=0.3, tokens=4 * TOKENS)
    found: ManneredFound = shown.manners
    assert found.failed == 0
    assert found.hung_up == found.aborting == 3
    assert found.work_after_hang_up_share is not None
    assert (found.work_after_hang_up_share > 0.2) == works_on


@pytest.mark.parametrize(
    "kind", [pytest.param("transformers", marks=NEEDS_SERVE), pytest.param("litserve", marks=NEEDS_LITSERVE)]
)
def test_slow_clients_get_their_answers_and_keep_no_others_waiting(kind: str, folder: Path) -> None:
    """What they have not read fits into the buffers of both servers, which compute the next answer meanwhile."""
    row, shown = stressed(kind, folder, rate=1.0, trial=15.0, slow_clients=(0.2, 1500.0))
    found: ManneredFound = shown.manners
    assert (found.slow, found.slow_answered, found.failed) == (3, 3, 0)
    assert found.slow_p50_ns is not None
    assert found.others_p50_ns is not None
    assert found.slow_p50_ns > 2 * found.others_p50_ns
    assert row.scenario_figures["others_latency_ratio"].value < 2.0
