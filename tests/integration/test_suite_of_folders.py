"""``fairlap suite run`` from beginning to end: ten callables in two folders, in fresh processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import fairlap
from published_schemas import checked
from suites import folders_of_callables, suite_of_calls

pytestmark = pytest.mark.thorough

NAMES = [f"f{number}" for number in range(10)]
EQUAL = dict.fromkeys(NAMES, 10_000)
SHARED = 'max_slowdown = "5%"\nthreads = 1\nseconds = "20ms"\nblocks = 12\n'


@pytest.mark.timeout(1200)  # twenty sides in twelve blocks each
@pytest.mark.parametrize(("slower", "statuses"), [({"f6"}, {1}), (set(), {0})])
def test_the_callable_that_is_slowed_by_20_percent_is_found_among_ten(
    tmp_path: Path, slower: set[str], statuses: set[int]
) -> None:
    folders_of_callables(tmp_path, EQUAL, EQUAL | dict.fromkeys(slower, 12_000))
    (tmp_path / "suite.toml").write_text(suite_of_calls(NAMES, SHARED))
    done = fairlap(
        "suite", "run", "suite.toml", "--base", "base", "--change", "change", "-q", "--json", "-o", "suite.html",
        cwd=tmp_path, timeout_s=1100, FAIRLAP_STORE=tmp_path / "runs.sqlite",
    )  # fmt: skip
    found = checked(done.stdout)
    shown = {race["name"] for race in found["races"] if any(each["status"] == "slower" for each in race["findings"])}
    assert (done.returncode in statuses, shown) == (True, slower), done.stdout
    for race in found["races"]:
        stored = fairlap("show", race["run"], "--json", cwd=tmp_path, FAIRLAP_STORE=tmp_path / "runs.sqlite")
        assert checked(stored.stdout)["plan"]["alpha"] == pytest.approx(0.005)
