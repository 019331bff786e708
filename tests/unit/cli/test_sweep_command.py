"""`fairlap sweep` refuses in one line what it cannot do, and needs no cluster for what needs none."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path

import pytest
from command_line import error_code, fairlap, output, refusal

REQUEST = """
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
    file.write_text(REQUEST)
    return file


def test_a_dry_run_prints_the_plans_without_a_cluster(request_file: Path) -> None:
    plans = json.loads(output("sweep", request_file, "--dry-run", "--json", "--cluster", "ray://127.0.0.1:1"))
    assert len(plans["small"]["blocks"]) == 2
    assert "small" in output("sweep", request_file, "--dry-run")


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
            assert time.monotonic() - began_s < 30
