"""The limits of the control group that this process lives in, of version 2 or 1."""

from __future__ import annotations

from dataclasses import dataclass

from fairlap.machine.root import Root, whole_number

_NO_LIMIT_BYTES = 1 << 60  # version 1 writes a huge number for none


@dataclass(frozen=True)
class GroupLimits:
    """None where there is no limit, or where it is not told."""

    cpus: float | None = None  # as many whole cores may be busy on average
    memory_bytes: int | None = None
    cores: str = ""  # the kernel's list of cores it may use


@dataclass(frozen=True)
class Throttled:
    """What the quota has done so far."""

    periods: int
    throttled_periods: int


def group_limits(root: Root) -> GroupLimits:
    """A limit holds for every group below the one that has it, so the tightest on the way up counts."""
    cpus: list[float] = []
    memory: list[int] = []
    cores = ""
    for folder in _folders(root, ""):
        quota, _, period = root.text(f"{folder}/cpu.max").partition(" ")
        cpus += _cores_of(whole_number(quota), whole_number(period))
        memory += _bytes(root.number(f"{folder}/memory.max"))
        cores = cores or root.text(f"{folder}/cpuset.cpus.effective")
    for folder in _folders(root, "cpu"):
        cpus += _cores_of(root.number(f"{folder}/cpu.cfs_quota_us"), root.number(f"{folder}/cpu.cfs_period_us"))
    for folder in _folders(root, "memory"):
        memory += _bytes(root.number(f"{folder}/memory.limit_in_bytes"))
    for folder in _folders(root, "cpuset"):
        cores = cores or root.text(f"{folder}/cpuset.effective_cpus") or root.text(f"{folder}/cpuset.cpus")
    return GroupLimits(min(cpus, default=None), min(memory, default=None), cores)


def throttled(root: Root) -> Throttled | None:
    """Of the nearest group that counts it."""
    for folder in (*_folders(root, ""), *_folders(root, "cpu")):
        told = {}
        for line in root.lines(f"{folder}/cpu.stat"):
            name, _, value = line.partition(" ")
            told[name] = whole_number(value) or 0
        if "nr_throttled" in told:
            return Throttled(told.get("nr_periods", 0), told["nr_throttled"])
    return None


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
        tops = [f"sys/fs/cgroup/{controllers}", f"sys/fs/cgroup/{controller}"] if controller else ["sys/fs/cgroup"]
        top = next((each for each in tops if root.exists(each)), tops[0])
        parts = [part for part in path.split("/") if part and part != ".."]
        return [f"{top}/{'/'.join(parts[:depth])}".rstrip("/") for depth in range(len(parts), -1, -1)]
    return []


def _cores_of(quota_us: int | None, period_us: int | None) -> list[float]:
    return [quota_us / period_us] if quota_us and period_us and quota_us > 0 and period_us > 0 else []


def _bytes(limit: int | None) -> list[int]:
    return [limit] if limit and 0 < limit < _NO_LIMIT_BYTES else []
