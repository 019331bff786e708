"""Memory: how much, what backs it, and how the kernel hands it out."""

from __future__ import annotations

from fairlap.machine.root import Root, kilobytes, size_text


def memory_facts(root: Root) -> dict[str, str]:
    told = memory_bytes(root)
    return {
        "memory": size_text(told["MemTotal"]) if "MemTotal" in told else "",
        "swap": ("none" if told["SwapTotal"] == 0 else size_text(told["SwapTotal"])) if "SwapTotal" in told else "",
        "swappiness": root.text("proc/sys/vm/swappiness"),
        "huge pages": chosen(root.text("sys/kernel/mm/transparent_hugepage/enabled")),
        "huge page defragmentation": chosen(root.text("sys/kernel/mm/transparent_hugepage/defrag")),
        "reserved huge pages": root.text("proc/sys/vm/nr_hugepages"),
        "overcommit": root.text("proc/sys/vm/overcommit_memory"),
        "numa balancing": root.text("proc/sys/kernel/numa_balancing"),
    }


def memory_bytes(root: Root) -> dict[str, int]:
    """What ``/proc/meminfo`` tells, in bytes."""
    found = {}
    for line in root.lines("proc/meminfo"):
        name, _, value = line.partition(":")
        size = kilobytes(value)
        if size is not None:
            found[name] = size * 1024
    return found


def chosen(setting: str) -> str:
    """Of ``always [madvise] never`` the one in brackets."""
    return setting.partition("[")[2].partition("]")[0]
