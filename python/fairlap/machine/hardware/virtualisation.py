"""The virtual machine and the container that this process runs in, if any, and what it may use."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fairlap import quantity_text
from fairlap.machine.control_group import group_limits
from fairlap.machine.hardware.counters import cpu_ticks, steal_share
from fairlap.machine.hardware.processor import flags
from fairlap.machine.root import Root

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
        "memory limit": "" if limits.memory_bytes is None else quantity_text.size(limits.memory_bytes),
        "cores of the group": limits.cores,
    }


def runtime(root: Root, environment: Mapping[str, str]) -> str:
    """Which container runtime; empty where there is no sign of one."""
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
    """Podman records the image of a container; others only do through a variable."""
    texts = root.text("run/.containerenv") + " " + " ".join(environment.get(name, "") for name in _IMAGE_VARIABLES)
    found = _DIGEST.search(texts)
    return found.group() if found else ""


_PRODUCTS: Mapping[str, str] = {
    "kvm": "KVM",
    "qemu": "KVM or QEMU",
    "amazon ec2": "Amazon EC2",
    "google": "Google Compute Engine",
    "virtual machine": "Hyper-V",
    "vmware": "VMware",
    "virtualbox": "VirtualBox",
    "xen": "Xen",
    "firecracker": "Firecracker",
    "parallels": "Parallels",
    "openstack": "OpenStack",
    "cloud hypervisor": "Cloud Hypervisor",
}


def virtualisation_facts(root: Root) -> dict[str, str]:
    kind = virtualisation(root)
    share = steal_share(cpu_ticks(root))
    return {
        "hypervisor": _hypervisor(kind),
        "virtualisation": kind,
        "steal so far": "" if share is None else quantity_text.share(share),
    }


def virtualisation(root: Root) -> str:
    """Which hypervisor; ``none`` on bare metal, empty where it is not known."""
    if named := _by_product(root) or _by_traces(root):
        return named
    known = flags(root)
    if "hypervisor" in known:
        return "unnamed"
    return "none" if known and "asimd" not in known else ""  # Arm's features name no hypervisor


def _hypervisor(kind: str) -> str:
    """Yes or no, as runs have always recorded it."""
    if kind:
        return "no" if kind == "none" else "yes"
    return ""


def _by_product(root: Root) -> str:
    folder = "sys/class/dmi/id"
    named = " ".join(root.text(f"{folder}/{name}") for name in ("sys_vendor", "product_name", "board_vendor")).lower()
    metal = "metal" in named  # cloud providers rent whole machines under the same vendor's name
    return "" if metal else next((kind for word, kind in _PRODUCTS.items() if word in named), "")


def _by_traces(root: Root) -> str:
    """Recognize a virtual machine without firmware tables by its clocks or buses."""
    kind = root.text("sys/hypervisor/type")
    if kind:
        return kind.capitalize()
    clocks = root.text("sys/devices/system/clocksource/clocksource0/available_clocksource").split()
    if "kvm-clock" in clocks:
        return "KVM"
    if any(clock.startswith("hyperv") for clock in clocks):
        return "Hyper-V"
    tree = root.text("sys/firmware/devicetree/base/hypervisor/compatible").strip("\0")
    return "KVM" if "kvm" in tree else ""
