"""Every command of README's first two screens runs, with its files and servers there, and a small number of blocks."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fairlap.models.draw import draw_weights
from fairlap.models.registry import find, implementation_at
from fairlap.race.equal_work.material_sources import materials_for
from fairlap.request.work import Work
from machine_marks import needs_proc
from model_servers import serving

TOP = Path(__file__).parents[2]
README = (TOP / "README.md").read_text()
SHORTER = {
    "compare": ("--blocks", "1", "--seconds", "0.05"),
    "load": ("--blocks", "1", "--trial", "100ms", "--threads", "1"),
}
OF_RELEASES = ("--blocks", "6", "--seconds", "0.05")  # the fewest with which the gate after it can claim anything
SERVER = "127.0.0.1:8000/v2/models/mlp"

pytestmark = [pytest.mark.slow, pytest.mark.sanitized, needs_proc]


def commands() -> list[str]:
    """Of blocks and of sentences, in their order, each once; the gate after the race that it is about."""
    blocks = "".join(re.findall(r"^```\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
    found = [
        *re.findall(r"^(?:\$ )?(fairlap .*?)(?: {2,}#.*)?$", blocks, re.MULTILINE),
        *re.findall(r"`(fairlap .*?)`", README),
    ]
    found = [line for line in found if not line.startswith("fairlap: ")]
    gates = [line for line in found if line.startswith("fairlap gate ")]
    others = [line.replace("CODE", "E_BUSY_MACHINE") for line in found if line not in gates]
    after = next(place for place, line in enumerate(others) if "onnxruntime==" in line) + 1
    return list(dict.fromkeys([*others[:after], *gates, *others[after:]]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what README calls yours."""
    made = tmp_path_factory.mktemp("readme")
    model = find("convnet")
    graph = implementation_at(model.package, "onnx").build(draw_weights(model.spec, 0), "batch")
    (made / "model.onnx").write_bytes(graph.SerializeToString())
    (made / "my_package.py").write_text(
        "import torch\n\ndef make_model():\n    return torch.nn.Linear(8, 2), (torch.zeros(4, 8),)\n"
    )
    (made / "my_kernels.py").write_text("def old():\n    return sum(range(2000))\n\n\ndef new():\n    return 1999000\n")
    for name in ("old", "new"):
        (made / name).write_text("#!/bin/sh\nexit 0\n")
        (made / name).chmod(0o755)
    return made


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving("mlp", materials_for(Work("mlp", 1), 0)) as model:
        yield f"127.0.0.1:{model.port}/v2/models/m"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    made = tmp_path_factory.mktemp("home")
    return {"FAIRLAP_STORE": str(made / "runs.sqlite"), "FAIRLAP_CACHE": str(made / "cache")}


def test_the_readme_has_commands() -> None:
    assert len(commands()) >= 15
    assert {line.split()[1] for line in commands()} >= {"compare", "load", "time", "show", "report", "rerun", "gate"}


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_readme_runs(
    line: str, folder: Path, server: str, home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    words = shlex.split(line.replace(SERVER, server))
    shorter = () if "--budget" in words else SHORTER.get(words[1], ())
    if words[1] == "compare" and "onnxruntime==" in line:
        shorter = OF_RELEASES
    done = subprocess.run(
        [sys.executable, "-m", *words, *shorter], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in allowed(words), f"{line}: {done.stderr}"


def allowed(words: list[str]) -> set[int]:
    """Return the statuses of a slowdown, of a machine that is too busy for a verdict, and of one that is not fit."""
    return {"gate": {0, 1, 3}, "doctor": {0, 1, 2}}.get(words[1], {0})
