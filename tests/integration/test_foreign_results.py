"""What asv and pytest-benchmark measured here and now, as they show it themselves, equals what is imported of it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import invoke, output
from fairlap.store.foreign_points import ForeignPoint, foreign_points
from fairlap.store.store import open_store
from published_schemas import checked
from pytest_alone import environment_alone

pytestmark = pytest.mark.slow

BENCHMARKS = """
class Suite:
    params = [[100, 1000], ["a", "b"]]
    param_names = ["n", "kind"]

    def setup(self, n, kind):
        if (n, kind) == (1000, "b"):
            raise NotImplementedError

    def time_sum(self, n, kind):
        sum(range(n))


def track_answer():
    return 42


def peakmem_list():
    return [0] * 100_000
"""
SPEED = """
import pytest

@pytest.mark.parametrize("n", [10, 1000])
def test_sum(benchmark, n):
    benchmark(lambda: sum(range(n)))
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "a")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.com")
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


def ran(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, env=environment_alone())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commits(number: int) -> list[str]:
    ran("git", "init", "-q", "-b", "main")
    found = []
    for each in range(number):
        Path("changes.txt").write_text(str(each))
        ran("git", "add", "changes.txt")
        ran(
            "git",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "-q",
            "-m",
            str(each),
            "--date",
            f"2026-01-0{each + 1}T00:00Z",
        )
        found.append(ran("git", "rev-parse", "HEAD").strip())
    return found


def test_the_graphs_that_asv_publishes_have_the_imported_values(place: Path) -> None:
    pytest.importorskip("asv", reason="`make test` installs it and runs this")
    hashes = commits(3)
    Path("benchmarks").mkdir()
    Path("benchmarks/__init__.py").write_text("")
    Path("benchmarks/suite.py").write_text(BENCHMARKS)
    Path("asv.conf.json").write_text(
        json.dumps(
            {
                "version": 1,
                "project": "p",
                "project_url": "",
                "repo": ".",
                "branches": ["main"],
                "environment_type": "existing",
                "pythons": ["same"],
            }
        )
    )
    asv = (sys.executable, "-m", "asv")
    ran(*asv, "machine", "--yes", "--machine", "here")
    for each in hashes:
        ran(*asv, "run", "--quick", "--machine", "here", f"--set-commit-hash={each}")
    ran(*asv, "publish", "--no-pull")
    index = json.loads(Path("html/index.json").read_text())
    by_revision = index["revision_to_hash"]
    published: dict[tuple[str, str], float] = {}
    for name, benchmark in index["benchmarks"].items():
        [graph] = [each for each in Path("html/graphs").rglob(f"{name}.json") if "summary" not in each.parts]
        for revision, values in json.loads(graph.read_text()):
            for at, value in enumerate(values if isinstance(values, list) else [values]):
                if value is not None:
                    published[f"{name} {at}" if benchmark["params"] else name, by_revision[str(revision)]] = value
    assert invoke("runs", "import", "results").exit_code == 0
    trends = checked(output("history", "asv", "--json"))["trends"]
    combinations = {f"({n}, '{kind}')": at for at, (n, kind) in enumerate((n, k) for n in (100, 1000) for k in "ab")}
    imported: dict[tuple[str, str], float] = {}
    for trend in trends:
        [series] = trend["series"]
        name, bracket, rest = series["contestant"].partition("(")
        title = f"{name} {combinations[f'({rest}']}" if bracket else name
        for point in series["points"]:
            at = hashes[trend["runs"].index(point["run"])]  # in the order of the commits
            imported[title, at] = point["figure"]["value"]
    assert imported.keys() == published.keys()
    assert len(imported) == 3 * (3 + 2)
    for key, value in published.items():
        assert imported[key] == pytest.approx(value, rel=1e-12)


def test_the_medians_that_pytest_benchmark_compares_are_the_imported_ones(place: Path) -> None:
    pytest.importorskip("pytest_benchmark", reason="`make test` installs it and runs this")
    [commit] = commits(1)
    Path("test_speed.py").write_text(SPEED)
    options = ("--benchmark-autosave", "--benchmark-max-time=0.01", "-p", "no:cacheprovider", "-q")
    for _ in range(2):
        ran(sys.executable, "-m", "pytest", *options, "test_speed.py")
    ran(sys.executable, "-m", "pytest_benchmark", "compare", "--csv=medians.csv")
    with Path("medians.csv").open() as file:
        medians = sorted(float(each["median"]) for each in csv.DictReader(file))
    output("runs", "import", ".benchmarks")
    trends = checked(output("history", "pytest-benchmark", "--json"))["trends"]
    found = [point["figure"]["value"] for trend in trends for series in trend["series"] for point in series["points"]]
    assert sorted(found) == pytest.approx(medians, rel=1e-12)
    assert len(found) == 4
    assert {series["contestant"] for trend in trends for series in trend["series"]} == {
        "test_speed.py::test_sum[10]", "test_speed.py::test_sum[1000]",
    }  # fmt: skip
    assert commit in {each.commit for each in _points()}


def _points() -> list[ForeignPoint]:

    with open_store(reading=True) as store:
        return list(store.ask(foreign_points, "pytest-benchmark"))
