"""The list of runs in a real browser: it is drawn, leads on, and the browser complains of nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chromium import PROGRAM, chromium
from fairlap.store.store import open_store
from machine_marks import needs
from runs_in_store import keep_whole
from runs_to_show import HOSTILE, run_of
from serving import serving

needs("uvicorn", reason="needs the extra serve; `make test` installs it and runs this")

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here; Debian has it in the package chromium")


def test_a_filter_and_a_run_are_a_click_away_and_the_policy_stops_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.sqlite") as store:
        run = keep_whole(store, run_of(HOSTILE))
    with (
        serving(tmp_path / "runs.sqlite", FAIRLAP_SERVE_TOKEN="a-token-of-a-test") as (_, address),
        chromium(tmp_path / "profile") as page,
    ):
        page.send("Page.navigate", url=f"{address}?token=a-token-of-a-test")
        page.wait_for(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")
        page.run("document.querySelector('input[name=model]').value = 'mlp'")
        page.run("document.querySelector('form').requestSubmit()")
        page.wait_for("location.search.includes('model=mlp') && document.readyState === 'complete'")
        assert page.run("document.querySelectorAll('tbody tr').length") == 1
        page.run("document.querySelector('tbody a').click()")
        page.wait_for(f"location.pathname === '/runs/{run}' && document.documentElement?.dataset.drawn === 'all'")
        assert [each for each in page.complaints if "favicon" not in each] == []
        assert all(url.startswith((address, "data:", "blob:")) for url in page.requests)
