"""NVIDIA's service by which the processes of a user share a GPU (MPS)."""

from __future__ import annotations

from collections.abc import Mapping

from fairlap.machine.root import Root

_PIPES = "/tmp/nvidia-mps"  # where the control daemon has its pipes and the file with its id, by default
_DAEMON = "nvidia-cuda-mps-control.pid"
_PIPES_VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"
_SHARE_VARIABLE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


def service_facts(root: Root, variables: Mapping[str, str]) -> dict[str, str]:
    """Whether its daemon runs, to which every program of CUDA connects, and the share of the GPU that one may use."""
    folder = (variables.get(_PIPES_VARIABLE) or _PIPES).lstrip("/")
    daemon = root.number(f"{folder}/{_DAEMON}")
    if daemon is None or not root.exists(f"proc/{daemon}"):
        return {"gpu mps": "off"}
    share = variables.get(_SHARE_VARIABLE, "")
    return {"gpu mps": f"on, at most {share} % of the threads" if share else "on"}
