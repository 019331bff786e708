"""The folder of criterion's results, in the layout that its sources write: the newest run by name, and nothing else."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_line import invoke
from fairlap.frameworks.programs.own_report import OwnReport, ReportFailed, criterion_texts
from fairlap.frameworks.programs.reported_times import BadReport, NoReport, reported_time
from fairlap.request.commands import words_of


def estimate(value: float) -> dict[str, object]:
    bounds = {"confidence_level": 0.95, "lower_bound": 0.99 * value, "upper_bound": 1.01 * value}
    return {"confidence_interval": bounds, "point_estimate": value, "standard_error": 0.005 * value}


def write_benchmark(
    home: Path, directory: str, full_id: str, slope: float | None, mean: float, when: str = "new"
) -> Path:
    """Write as ``analysis/mod.rs`` of criterion 0.5 does: four files, each one line of JSON."""
    folder = home / directory / when
    folder.mkdir(parents=True)
    group, _, rest = full_id.partition("/")
    function, _, value = rest.partition("/")
    benchmark = {
        "group_id": group, "function_id": function or None, "value_str": value or None, "throughput": None,
        "full_id": full_id, "directory_name": directory, "title": full_id,
    }  # fmt: skip
    estimates = {
        "mean": estimate(mean), "median": estimate(0.99 * mean), "median_abs_dev": estimate(2.0),
        "slope": None if slope is None else estimate(slope), "std_dev": estimate(3.0),
    }  # fmt: skip
    mode = "Flat" if slope is None else "Linear"
    sample = {"sampling_mode": mode, "iters": [10.0, 20.0], "times": [10 * mean, 20 * mean]}
    contents = {"benchmark": benchmark, "estimates": estimates, "sample": sample, "tukey": [1.0, 2.0, 3.0, 4.0]}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content, separators=(",", ":")))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Hold three benchmarks, of which one has an earlier run, a comparison with it and a report."""
    home = tmp_path / "criterion"
    write_benchmark(home, "one", "one", 250.0, 260.0)
    write_benchmark(home, "one", "one", 500.0, 510.0, when="base")
    write_benchmark(home, "fib/plain/15", "fib/plain/15", None, 4_200.0)
    write_benchmark(home, "io_read/4_KiB", "io:read/4*KiB", 90.0, 91.0)
    change = home / "one" / "change"
    change.mkdir()
    (change / "estimates.json").write_text(json.dumps({"mean": estimate(-0.5), "median": estimate(-0.5)}))
    (home / "one" / "report").mkdir()
    (home / "report").mkdir()
    (home / "report" / "index.html").write_text("<html></html>")
    return home


def time_of(home: Path, name: str = "") -> tuple[str, float]:
    return reported_time(criterion_texts(home).decode(), "criterion", name)


@pytest.mark.parametrize(
    ("name", "time_ns"), [("one", 250.0), ("fib/plain/15", 4_200.0), ("fib", 4_200.0), ("io:read/4*KiB", 90.0)]
)
def test_a_benchmark_has_the_slope_or_else_the_mean_of_its_newest_run(home: Path, name: str, time_ns: float) -> None:
    assert time_of(home, name)[1] == pytest.approx(time_ns)


def test_a_benchmark_without_a_file_of_its_name_has_that_of_its_folder(home: Path) -> None:
    (home / "fib/plain/15/new/benchmark.json").unlink()
    name, time_ns = time_of(home, "fib/plain/15")
    assert (name, time_ns) == ("fib/plain/15", 4_200.0)


def test_one_of_several_benchmarks_is_named_and_an_empty_folder_is_no_report(home: Path, tmp_path: Path) -> None:
    with pytest.raises(BadReport, match="fib/plain/15"):
        time_of(home)
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoReport):
        time_of(tmp_path / "empty")


def test_each_run_is_read_from_a_folder_that_the_run_before_it_did_not_leave(tmp_path: Path) -> None:
    report = OwnReport(words_of("env CRITERION_HOME={report} ./bench --bench"), "criterion:one")
    folder = Path(report.words[1].partition("=")[2])
    for slope in (250.0, 251.0):
        write_benchmark(folder, "one", "one", slope, 300.0)
        report.keep(bytes, bytes)
        assert not folder.exists()
    assert list(report.newest_ns(2)) == [250.0, 251.0]
    assert report.method == "reported by criterion, one"
    with pytest.raises(ReportFailed) as failed:
        report.keep(bytes, bytes)
    assert failed.value.code == "E_REPORT"


@pytest.mark.slow
@pytest.mark.sanitized
def test_commands_race_by_what_they_write_below_criterion_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    commands = []
    for name, slope in (("fast", 250.0), ("slow", 500.0)):
        made = write_benchmark(tmp_path / name, "one", "one", slope, slope).parent.parent
        commands.append(f"--command={name}=env CRITERION_HOME={{report}} sh -c {shlex.quote(f'cp -r {made} $0')}")
    words = [f"{each} {{report}}" for each in commands]
    options = ("--reported", "criterion:one", "--blocks", "1", "--threads", "1", "--seconds", "50ms", "--json", "-q")
    done = invoke("compare", *words, "--conditions", "as-found", *options)
    assert done.exit_code == 0, done.output
    found = {row["contestant"]: row["judged"]["value"] for row in json.loads(done.stdout)["rows"]}
    assert found == {"fast": pytest.approx(250.0), "slow": pytest.approx(500.0)}
