"""``fairlap sweep``: what it refuses, the plans that its request files alone decide, and the published examples."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from command_line import error_code, fairlap, output, refusal
from fairlap.errors import InvalidRequest
from fairlap.race.planning.plan import Plan
from fairlap.race.planning.plan_drawing import on_cores
from fairlap.sweep.requests import plans_of

SMALL = """
models = ["callable"]
contestants = ["python:call=os.getpid", "python:call=os.getppid"]
blocks = 2
threads = 1
seconds = 0.02
"""


@pytest.fixture
def request_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_STORE", str(tmp_path / "runs.sqlite"))
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return file


def test_a_dry_run_prints_the_plans_without_a_cluster(request_file: Path) -> None:
    plans = json.loads(output("sweep", request_file, "--dry-run", "--json", "--cluster", "ray://127.0.0.1:1"))
    assert len(plans["plans"]["small"]["blocks"]) == 2
    assert "small" in output("sweep", request_file, "--dry-run")


def test_races_of_a_suite_are_requests_that_share_one_error_rate(tmp_path: Path) -> None:
    file = tmp_path / "nightly.toml"
    race = SMALL.replace("blocks = 2\nthreads = 1\n", "")
    file.write_text(
        f'blocks = 3\nthreads = 1\n[[race]]\nname = "pid"{race}[[race]]\nname = "two"{race}'
        '[[race]]\nname = "sides"\ncall = "os.path:join"\n'
    )
    said: list[str] = []
    plans = plans_of([file], said.append)
    assert list(plans) == ["nightly/pid", "nightly/two"]
    assert [len(plan.blocks) for plan in plans.values()] == [3, 3]
    assert sum(plan.alpha for plan in plans.values()) == pytest.approx(0.05)
    assert [line.partition(" ")[0] for line in said] == ["nightly/sides"]
    file.write_text(f'[[race]]\nname = "pid"{race}')
    with pytest.raises(InvalidRequest) as refused:
        plans_of([file], said.append)
    assert refused.value.code == "E_SWEEP"


def test_request_files_and_a_sweep_to_resume_exclude_each_other(request_file: Path) -> None:
    assert refusal("sweep").code == "E_SWEEP"
    assert refusal("sweep", request_file, "--resume", "last").code == "E_SWEEP"
    assert refusal("sweep", "--resume", "last", "--machines", "every").code == "E_SWEEP"
    assert refusal("sweep", "--resume", "last").code == "E_SWEEP"


def test_without_ray_the_error_names_what_to_install(request_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    refused = refusal("sweep", request_file)
    assert refused.code == "E_NOT_AVAILABLE"
    assert "fairlap[sweep]" in str(refused)


@pytest.mark.parametrize("name", ["remote", "ray://", "ray://host", "http://127.0.0.1:1", "ray://[", "ray://h:99999"])
def test_what_names_no_cluster_is_refused(request_file: Path, name: str) -> None:
    assert refusal("sweep", request_file, "--cluster", name).code == "E_CLUSTER"
    assert refusal("sweep", request_file, "--cluster", name, "--dry-run").code == "E_CLUSTER"


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_one_line_within_seconds(request_file: Path) -> None:
    pytest.importorskip("ray", reason="needs ray, which `make test` installs")
    with socket.socket() as silent:  # accepts connections, and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        for name in ("ray://127.0.0.1:1", f"ray://127.0.0.1:{port}", "auto"):
            began_s = time.monotonic()
            done = fairlap("sweep", request_file, "--cluster", name, "--quiet", RAY_ADDRESS="127.0.0.1:1")
            assert error_code(done) == "E_CLUSTER", name
            assert done.returncode != 0
            assert time.monotonic() - began_s < 120


REQUEST = """
models = ["mlp"]
contestants = ["python:call=os.getpid", "python:call=os.getppid"]
blocks = 6
threads = 2
seed = 3
"""


def plans(folder: Path, text: str = REQUEST) -> dict[str, Plan]:
    file = folder / "small.toml"
    file.write_text(text.replace('"mlp"', '"callable"'))
    return plans_of([file], lambda _line: None)


def test_the_plan_is_the_same_whatever_cores_the_drawing_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for cores in ({0}, {0, 1, 2, 3, 4, 5, 6, 7}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, cores=cores: cores)
        found.append(plans(tmp_path)["small"])
    assert found[0] == found[1]
    assert found[0].threads == 2
    assert len(found[0].blocks) == 6


def test_on_other_cores_a_plan_changes_in_nothing_but_the_cores(tmp_path: Path) -> None:
    plan = plans(tmp_path)["small"]
    moved = on_cores(plan, (3, 5, 8, 9))
    assert moved == on_cores(plan, (3, 5, 8, 9))
    assert moved.available_cores == (3, 5, 8, 9)
    assert all(len(block.cores) == 2 and set(block.cores) <= {3, 5, 8, 9} for block in moved.blocks)
    assert len({block.cores for block in moved.blocks}) > 1
    back = [msgspec.structs.replace(block, cores=()) for block in moved.blocks]
    assert back == [msgspec.structs.replace(block, cores=()) for block in plan.blocks]
    with pytest.raises(InvalidRequest):
        on_cores(plan, (3,))


def test_each_scale_gets_the_cores_that_it_takes(tmp_path: Path) -> None:
    plan = plans(tmp_path, REQUEST.replace("threads = 2", "threads = [1, 3]"))["small"]
    moved = on_cores(plan, (4, 5, 6, 7))
    scales = [(moved.works[block.work].scale, len(block.cores)) for block in moved.blocks]
    assert {(scale.threads, cores) for scale, cores in scales if scale is not None} == {(1, 1), (3, 3)}
    with pytest.raises(InvalidRequest):
        on_cores(plan, (4, 5))


@pytest.mark.parametrize(
    "change",
    [
        ("seed = 3", 'processes = 2\nhosts = ["a", "b"]'),
        ("blocks = 6", ""),
        ("threads = 2", ""),
        ("seed = 3", 'budget = "10s"'),
        ("seed = 3", "target = 0.01"),
        ("seed = 3", 'output = ["x.json"]'),
        ("seed = 3", 'price = "1/h"'),
        ("seed = 3", "min_memory = true"),
        ("seed = 3", "profile = true"),
        ("seed = 3", "recompile = 8"),
        ('"python:call=os.getpid"', '"torch:best"'),
        ('"mlp"', '"conv-*"'),
    ],
)
def test_a_request_that_depends_on_the_machine_or_on_an_order_is_refused(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        plans(tmp_path, REQUEST.replace(*change))
    assert refused.value.code == "E_SWEEP"
    assert len(str(refused.value).splitlines()) == 1


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files = [tmp_path / "small.toml", tmp_path / "other" / "small.toml"]
    for file in files:
        file.write_text(REQUEST.replace('"mlp"', '"callable"'))
    with pytest.raises(InvalidRequest) as refused:
        plans_of(files, lambda _line: None)
    assert refused.value.code == "E_SWEEP"


EXAMPLES = Path(__file__).parents[3] / "docs/examples/sweep"


def test_the_manifest_is_a_ray_cluster_whose_pods_are_on_different_machines() -> None:
    yaml = pytest.importorskip("yaml")
    cluster = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text())
    assert cluster["kind"] == "RayCluster"
    assert cluster["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    [group] = cluster["spec"]["workerGroupSpecs"]
    pods = group["template"]
    [term] = pods["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    [container] = pods["spec"]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]


def test_the_script_for_slurm_is_valid_bash() -> None:
    checked = subprocess.run(["bash", "-n", EXAMPLES / "slurm.sh"], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_request_can_be_swept() -> None:
    [plan] = plans_of([EXAMPLES / "mlp.toml"], lambda _line: None).values()
    assert plan.threads == 2
    assert [work.batch for work in plan.works] == [8, 64]
    assert len(plan.blocks) == 2 * 12
