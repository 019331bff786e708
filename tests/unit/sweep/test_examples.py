"""The example files of the page on sweeps can be read by those that they are for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fairlap.sweep.requests import plans_of

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
