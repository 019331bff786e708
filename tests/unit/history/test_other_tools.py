"""Results of pytest-benchmark and asv: both ways, and no verdict where their files hold no evidence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import invoke
from fairlap.errors import InvalidRequest
from fairlap.history.other_tools import read_benchmarks
from fairlap.race.run import Run
from fairlap.render.outputs import write
from fairlap.results.results import results_of
from fairlap.store.runs.run_file import save_run
from saved_runs import MACHINE, saved_run

RECORDED = Path(__file__).parent / "recorded"
SUFFIXES = (".asv.json", ".pytest-benchmark.json")
FACTS = {**MACHINE, "architecture": "x86_64", "python": "3.11.7", "memory": "4 GB"}
PASSED, SLOWER, INCONCLUSIVE, NOT_COMPARABLE = 0, 1, 2, 3


def a_run(ns: float = 1e6, *, seed: int = 0, spread: float = 0.003, blocks: int = 12, cpu: str = "one") -> Run:
    return saved_run({"torch": ns}, seed=seed, spread=spread, blocks=blocks, machine={**FACTS, "cpu model": cpu})


def written(folder: Path, name: str, run: Run) -> Path:
    file = folder / name
    run.began_at = "2026-01-02T03:04:05+00:00"
    write(file, results_of(run, "r"))
    return file


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_back(suffix: str, tmp_path: Path) -> None:
    run = saved_run({"torch": 1e6, "jax": 2e6}, machine=FACTS)
    found = read_benchmarks(written(tmp_path, f"a{suffix}", run))
    assert found is not None
    assert found.machine == {"cpu model": "one", "cores": "2", "architecture": "x86_64", "kernel": "6.1"}
    assert set(found.by_name) == {f"mlp · infer · fp32 · batch 1[{name}]" for name in ("torch", "jax")}
    own = [process.headline_ns for process in run.processes if process.contestant == "torch"]
    assert found.by_name["mlp · infer · fp32 · batch 1[torch]"].processes_ns == pytest.approx(own)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("after", "options", "status"),
    [
        (a_run(1e6, seed=1), (), PASSED),
        (a_run(0.7e6, seed=1), (), PASSED),
        (a_run(1.5e6, seed=1), (), SLOWER),
        (a_run(1.1e6, seed=1), ("--max-slowdown", "20%"), PASSED),
        (a_run(1.02e6, seed=1, spread=0.05), ("--strict",), INCONCLUSIVE),
        (a_run(1e6, cpu="two"), (), NOT_COMPARABLE),
        (a_run(1e6, blocks=1), (), NOT_COMPARABLE),
        (saved_run({"jax": 1e6}, machine=FACTS), (), NOT_COMPARABLE),
    ],
)
def test_the_gate_reads_what_fairlap_wrote_for_other_tools(
    suffix: str, after: Run, options: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    before = written(tmp_path, f"before{suffix}", a_run())
    assert invoke("gate", before, written(tmp_path, f"after{suffix}", after), *options).exit_code == status
    save_run(tmp_path / "after.json", after)
    assert invoke("gate", before, tmp_path / "after.json", *options).exit_code == status


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("pytest-benchmark.json", {"test_b.py::test_sort"}),
        (
            "asv.json",
            {
                "sorting.time_list",
                *(f"sorting.Sorting.time_sort[{size}-{order}]" for size in (10, 1000) for order in ("up", "down")),
            },
        ),
    ],
)
def test_recorded_files_are_read_and_get_no_verdict(file: str, names: set[str]) -> None:
    found = read_benchmarks(RECORDED / file)
    assert found is not None
    assert set(found.by_name) == names
    assert all(each.median_ns > 0 and not each.processes_ns for each in found.by_name.values())
    assert found.machine["cpu model"] == "AMD EPYC"
    done = invoke("gate", RECORDED / file, RECORDED / file, "--json")
    assert done.exit_code == NOT_COMPARABLE
    findings = json.loads(done.stdout)["findings"]
    assert [each["status"] for each in findings] == ["not comparable"] * len(names)


def test_a_slowdown_in_one_process_is_no_verdict_however_large(tmp_path: Path) -> None:
    document = json.loads((RECORDED / "pytest-benchmark.json").read_text())
    document["benchmarks"][0]["stats"]["median"] *= 100
    (tmp_path / "slow.json").write_text(json.dumps(document))
    assert invoke("gate", RECORDED / "pytest-benchmark.json", tmp_path / "slow.json").exit_code == NOT_COMPARABLE


def test_a_benchmark_of_asv_that_failed_is_left_out(tmp_path: Path) -> None:
    document = json.loads((RECORDED / "asv.json").read_text())
    document["results"]["sorting.time_list"][0] = [None]
    document["results"]["sorting.Sorting.time_sort"][0][0] = float("nan")
    (tmp_path / "failed.json").write_text(json.dumps(document))
    found = read_benchmarks(tmp_path / "failed.json")
    assert found is not None
    assert len(found.by_name) == 3


@pytest.mark.parametrize("file", ["pytest-benchmark.json", "asv.json"])
@pytest.mark.parametrize("value", [7, [], [7], {"a": 7}, {"a": [[1.0], 7]}, {"a": [[1.0, 2.0], [["x"]]]}, "x"])
def test_a_file_that_is_only_alike_is_refused_with_its_code(file: str, value: Any, tmp_path: Path) -> None:
    document = json.loads((RECORDED / file).read_text())
    key = "benchmarks" if "benchmarks" in document else "results"
    if value == [] and key == "benchmarks":
        pytest.skip("no benchmarks are none")
    (tmp_path / "bad.json").write_text(json.dumps({**document, key: value}))
    with pytest.raises(InvalidRequest) as raised:
        read_benchmarks(tmp_path / "bad.json")
    assert raised.value.code == "E_OTHER_TOOL"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'"machine_info"', b'{"machine_info": 1', b"\xff\xfe"])
def test_other_files_are_none_of_theirs(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert read_benchmarks(tmp_path / "a.json") is None
    assert read_benchmarks(tmp_path / "none.json") is None
    assert invoke("gate", tmp_path / "a.json", tmp_path / "a.json").exit_code == NOT_COMPARABLE


def test_one_file_of_another_tool_is_refused() -> None:
    done = invoke("gate", RECORDED / "asv.json")
    assert done.exit_code == NOT_COMPARABLE
    assert "[E_REQUEST]" in done.stderr


def test_asv_loads_what_is_written(tmp_path: Path) -> None:
    results = pytest.importorskip("asv.results", reason="`make test` installs it and runs this")
    (tmp_path / "machine").mkdir()
    run = saved_run({"torch": 1e6, "jax": 2e6}, machine=FACTS)
    loaded = results.Results.load(str(written(tmp_path, "machine/a.asv.json", run)))
    name = "mlp · infer · fp32 · batch 1"
    params = loaded.get_result_params(name)
    assert params == [["'torch'", "'jax'"]]
    assert loaded.get_result_value(name, params) == pytest.approx([1e-3, 2e-3], rel=0.01)
    assert [len(each) for each in loaded.get_result_samples(name, params)] == [12, 12]
    assert [each["repeat"] for each in loaded.get_result_stats(name, params)] == [12, 12]


@pytest.mark.sanitized
def test_pytest_benchmark_compares_what_is_written(tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark", reason="`make test` installs it and runs this")
    files = [written(tmp_path, f"{name}.pytest-benchmark.json", a_run(ns)) for name, ns in (("a", 1e6), ("b", 1.5e6))]
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", *map(str, files), "--columns=median,rounds,iqr,outliers"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "[torch]" in line]
    assert len(lines) == 2
    assert all(" 12 " in line for line in lines)


def test_files_for_other_tools_are_json_for_strict_readers(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        msgspec.json.decode(written(tmp_path, f"a{suffix}", a_run(blocks=1)).read_bytes())
