"""Whether this runs in a container, of which kind and image, and what it may use."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairlap.machine.control_group import group_limits
from fairlap.machine.root import Root, size_text

_GROUPS = {
    "kubepods": "Kubernetes",
    "docker": "Docker",
    "libpod": "Podman",
    "containerd": "containerd",
    "cri-o": "CRI-O",
    "lxc": "LXC",
    "garden": "Garden",
}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IMAGE_VARIABLES = ("IMAGE_DIGEST", "CONTAINER_IMAGE_DIGEST", "CONTAINER_IMAGE", "IMAGE")


def container_facts(root: Root, environment: Mapping[str, str]) -> dict[str, str]:
    limits = group_limits(root)
    return {
        "container": runtime(root, environment),
        "image digest": image_digest(root, environment),
        "cpu limit": "" if limits.cpus is None else f"{limits.cpus:g}",
        "memory limit": "" if limits.memory_bytes is None else size_text(limits.memory_bytes),
        "cores of the group": limits.cores,
    }


def runtime(root: Root, environment: Mapping[str, str]) -> str:
    """Empty where nothing tells of one."""
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "Kubernetes"
    if root.exists("run/.containerenv"):
        return "Podman"
    groups = root.text("proc/self/cgroup")
    named = next((kind for word, kind in _GROUPS.items() if word in groups), "")
    if root.exists(".dockerenv"):
        return named or "Docker"
    return named or environment.get("container", "")


def image_digest(root: Root, environment: Mapping[str, str]) -> str:
    """Few containers tell which image they were made from: Podman does, and others through a variable."""
    told = root.text("run/.containerenv") + " " + " ".join(environment.get(name, "") for name in _IMAGE_VARIABLES)
    found = _DIGEST.search(told)
    return found.group() if found else ""
