"""The control groups of this process, of version 2 or 1: their limits, and what they have counted."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlap.machine.root import THIS_MACHINE, Root, whole_number

TOP = "sys/fs/cgroup"
_NO_LIMIT_BYTES = 1 << 60  # version 1 writes a huge number where there is no limit


@dataclass(frozen=True)
class GroupLimits:
    """None where there is no limit, or where it cannot be read."""

    cpus: float | None = None  # as many whole cores may be busy on average
    memory_bytes: int | None = None
    cores: str = ""  # the kernel's list of the cores that the group may use


@dataclass(frozen=True)
class Throttled:
    """What the quota has done since the group was made."""

    periods: int
    throttled_periods: int
    seconds: float | None


@dataclass(frozen=True)
class GroupUsage:
    """Of the nearest group that counts it, page cache and children that have ended included; None where none does."""

    memory_bytes: float | None
    memory_peak_bytes: float | None
    cpu_s: float | None
    throttled_s: float | None
    throttled_periods: float | None


def group_limits(root: Root = THIS_MACHINE) -> GroupLimits:
    """Read the tightest limits on the way up, since a limit holds for every group below the one that has it."""
    cpus: list[float] = []
    cores = ""
    for folder in _folders(root, ""):
        quota, _, period = root.text(f"{folder}/cpu.max").partition(" ")
        cpus += _cores_of(whole_number(quota), whole_number(period))
        cores = cores or root.text(f"{folder}/cpuset.cpus.effective")
    for folder in _folders(root, "cpu"):
        cpus += _cores_of(root.number(f"{folder}/cpu.cfs_quota_us"), root.number(f"{folder}/cpu.cfs_period_us"))
    for folder in _folders(root, "cpuset"):
        cores = cores or root.text(f"{folder}/cpuset.effective_cpus") or root.text(f"{folder}/cpuset.cpus")
    return GroupLimits(min(cpus, default=None), memory_limit_bytes(root), cores)


def memory_limit_bytes(root: Root = THIS_MACHINE) -> int | None:
    """Of the groups' memory alone, which is read before each process starts."""
    files = [f"{folder}/memory.max" for folder in _folders(root, "")]
    files += [f"{folder}/memory.limit_in_bytes" for folder in _folders(root, "memory")]
    return min((size for file in files for size in _bytes(root.number(file))), default=None)


def throttled(root: Root = THIS_MACHINE) -> Throttled | None:
    """Of all groups on the way up together, since the quota of any of them stops this process."""
    files = [root.named_numbers(f"{folder}/cpu.stat") for folder in (*_folders(root, ""), *_folders(root, "cpu"))]
    counts = [each for each in files if "nr_throttled" in each]
    if not counts:
        return None
    seconds = [stopped for each in counts if (stopped := _throttled_s(each)) is not None]
    return Throttled(
        sum(each.get("nr_periods", 0) for each in counts),
        sum(each["nr_throttled"] for each in counts),
        sum(seconds) if seconds else None,
    )


def group_usage(root: Root = THIS_MACHINE) -> GroupUsage:
    in_us, in_ns = 1e-6, 1e-9
    return GroupUsage(
        memory_bytes=_nearest(root, ("", "memory.current", "", 1), ("memory", "memory.usage_in_bytes", "", 1)),
        memory_peak_bytes=_nearest(root, ("", "memory.peak", "", 1), ("memory", "memory.max_usage_in_bytes", "", 1)),
        cpu_s=_nearest(root, ("", "cpu.stat", "usage_usec", in_us), ("cpuacct", "cpuacct.usage", "", in_ns)),
        throttled_s=_nearest(
            root, ("", "cpu.stat", "throttled_usec", in_us), ("cpu", "cpu.stat", "throttled_time", in_ns)
        ),
        throttled_periods=_nearest(root, ("", "cpu.stat", "nr_throttled", 1), ("cpu", "cpu.stat", "nr_throttled", 1)),
    )


def cores_worth(cores: int, root: Root = THIS_MACHINE) -> int:
    """How many of these cores the quotas let threads keep busy at once; one at least."""
    cpus = group_limits(root).cpus
    return cores if cpus is None else max(min(cores, int(cpus)), 1)


def oom_kills(root: Root = THIS_MACHINE) -> int:
    """Count processes that the kernel ended because a group's memory was used up; 0 also where it does not count."""
    files = [f"{folder}/memory.events" for folder in _folders(root, "")]
    files += [f"{folder}/memory.oom_control" for folder in _folders(root, "memory")]
    return next((count for file in files if (count := root.named_numbers(file).get("oom_kill")) is not None), 0)


def memory_groups(root: Root = THIS_MACHINE) -> list[str]:
    """Find the folders of the very groups that count this process's memory, without those above them."""
    own = [next(iter(_folders(root, controller)), "") for controller in ("", "memory")]
    return [folder for folder in own if folder and root.exists(folder)]


def shares_cpu_with(pids: Sequence[int], root: Root = THIS_MACHINE) -> bool:
    """Move processes into this process's group for CPU time, where the kernel has one for that alone (version 1).

    On a busy core each group gets an equal part, whatever the priority of its processes. In
    version 2 a process has one group for all, which is left to what made it. Return whether they are in the same group.
    """
    here = _group_of("self", root)
    if all(_group_of(pid, root) == here for pid in pids):
        return True
    for folder in _folders(root, "cpu")[:1] if root.is_this_machine else ():
        with contextlib.suppress(OSError):
            for pid in pids:
                Path(f"/{folder}/cgroup.procs").write_text(str(pid))
    return all(_group_of(pid, root) == here for pid in pids)


def _group_of(pid: int | str, root: Root) -> str:
    """Find the group that counts CPU time: that of version 1, or else of version 2."""
    found: dict[str, str] = {}
    for line in root.lines(f"proc/{pid}/cgroup"):
        controllers, _, path = line.partition(":")[2].partition(":")
        found |= dict.fromkeys(controllers.split(","), path)
    return found.get("cpu", found.get("", ""))


def _folders(root: Root, controller: str) -> list[str]:
    """From this process's group up to the top; of version 2 where no controller is named.

    A container often sees its own group as the top, while the path names it as the host does. So the top is
    always looked at too.
    """
    for line in root.lines("proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller not in controllers.split(","):
            continue
        tops = [f"{TOP}/{controllers}", f"{TOP}/{controller}"] if controller else [TOP]
        top = next((each for each in tops if root.exists(each)), tops[0])
        parts = [part for part in path.split("/") if part and part != ".."]
        return [f"{top}/{'/'.join(parts[:depth])}".rstrip("/") for depth in range(len(parts), -1, -1)]
    return []


def _nearest(root: Root, *places: tuple[str, str, str, float]) -> float | None:
    """Try places, each with controller, file, name of the number if the file holds several, and what it is times."""
    for controller, file, name, scale in places:
        for folder in _folders(root, controller):
            path = f"{folder}/{file}"
            number = root.named_numbers(path).get(name) if name else root.number(path)
            if number is not None:
                return number * scale
    return None


def _throttled_s(counted: dict[str, int]) -> float | None:
    if "throttled_usec" in counted:
        return counted["throttled_usec"] / 1e6
    return counted["throttled_time"] / 1e9 if "throttled_time" in counted else None  # version 1


def _cores_of(quota_us: int | None, period_us: int | None) -> list[float]:
    return [quota_us / period_us] if quota_us and period_us and quota_us > 0 and period_us > 0 else []


def _bytes(limit: int | None) -> list[int]:
    return [limit] if limit and 0 < limit < _NO_LIMIT_BYTES else []
