"""Machines made of the files that their kernels show."""

from __future__ import annotations

from pathlib import Path

from fairlap.machine.root import Root

Files = dict[str, str]

_CPU = "sys/devices/system/cpu"


def built(folder: Path, *layers: Files) -> Root:
    """Later layers replace files of earlier ones."""
    for path, text in {path: text for layer in layers for path, text in layer.items()}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Root(folder)


def _cores(pairs: list[str], package: list[int]) -> Files:
    """Write the kernel's list of siblings for each hardware thread, and its socket."""
    files: Files = {f"{_CPU}/online": f"0-{len(pairs) - 1}\n"}
    for cpu, (siblings, socket) in enumerate(zip(pairs, package, strict=True)):
        files[f"{_CPU}/cpu{cpu}/topology/thread_siblings_list"] = f"{siblings}\n"
        files[f"{_CPU}/cpu{cpu}/topology/physical_package_id"] = f"{socket}\n"
    return files


COMMON: Files = {
    "proc/meminfo": "MemTotal:       16384000 kB\nMemAvailable:   12000000 kB\nSwapTotal:  0 kB\nSwapFree:  0 kB\n",
    "proc/sys/kernel/osrelease": "6.1.0-13-amd64\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "proc/stat": "cpu  1000 0 500 8000 500 0 0 0 0 0\ncpu0 500 0 250 4000 250 0 0 0 0 0\n",
    "etc/os-release": 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
}

BARE_METAL: Files = {
    **COMMON,
    **_cores(["0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"], [0, 0, 1, 1, 0, 0, 1, 1]),
    "proc/cpuinfo": "processor : 0\nvendor_id : GenuineIntel\nmodel name : Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz\n"
    "microcode : 0x5003604\nflags : fpu tsc avx512f\n\nprocessor : 1\nmodel name : another\n",
    "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-7\n",
    f"{_CPU}/smt/control": "on\n",
    f"{_CPU}/intel_pstate/no_turbo": "0\n",
    f"{_CPU}/cpufreq/policy0/scaling_governor": "powersave\n",
    f"{_CPU}/cpufreq/policy1/scaling_governor": "performance\n",
    f"{_CPU}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
    f"{_CPU}/cpu0/cpufreq/base_frequency": "2500000\n",
    f"{_CPU}/cpu0/cpufreq/cpuinfo_max_freq": "3900000\n",
    f"{_CPU}/cpu0/cpufreq/scaling_max_freq": "3900000\n",
    f"{_CPU}/cpu0/cache/index0/level": "1\n",
    f"{_CPU}/cpu0/cache/index0/type": "Data\n",
    f"{_CPU}/cpu0/cache/index0/size": "32K\n",
    f"{_CPU}/cpu0/cache/index0/shared_cpu_list": "0,4\n",
    f"{_CPU}/cpu0/cache/index3/level": "3\n",
    f"{_CPU}/cpu0/cache/index3/type": "Unified\n",
    f"{_CPU}/cpu0/cache/index3/size": "28160K\n",
    f"{_CPU}/cpu0/cache/index3/shared_cpu_list": "0-1,4-5\n",
    f"{_CPU}/cpu0/thermal_throttle/core_throttle_count": "12\n",
    f"{_CPU}/cpu1/thermal_throttle/core_throttle_count": "3\n",
    f"{_CPU}/vulnerabilities/meltdown": "Mitigation: PTI\n",
    f"{_CPU}/vulnerabilities/mds": "Mitigation: Clear CPU buffers; SMT vulnerable\n",
    f"{_CPU}/vulnerabilities/srbds": "Not affected\n",
    "sys/devices/system/node/online": "0-1\n",
    "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "sys/class/dmi/id/product_name": "PowerEdge R740\n",
    "proc/self/cgroup": "0::/user.slice/user-1000.slice\n",
}

VIRTUAL: Files = {
    **COMMON,
    **_cores(["0", "1"], [0, 0]),
    "proc/cpuinfo": "processor : 0\nvendor_id : AuthenticAMD\nmodel name : AMD EPYC\nflags : fpu tsc hypervisor\n",
    "proc/self/status": "Cpus_allowed_list:\t0-1\n",
    "proc/stat": "cpu  1000 0 500 8000 0 0 0 500 0 0\n",
    "sys/class/dmi/id/sys_vendor": "QEMU\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "kvm-clock\n",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock tsc acpi_pm\n",
}

CONTAINER_V2: Files = {
    **VIRTUAL,
    ".dockerenv": "",
    "proc/self/cgroup": "0::/kubepods.slice/pod1/inner\n",
    "sys/fs/cgroup/kubepods.slice/pod1/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/kubepods.slice/pod1/inner/cpu.max": "max 100000\n",
    "sys/fs/cgroup/kubepods.slice/pod1/inner/memory.max": "1073741824\n",
    "sys/fs/cgroup/kubepods.slice/pod1/inner/cpu.stat": "usage_usec 5\nnr_periods 200\nnr_throttled 50\n",
    "sys/fs/cgroup/kubepods.slice/pod1/inner/cpuset.cpus.effective": "0-1\n",
}

# A container sees its own group as the top, while the path names it as the host does.
CONTAINER_V1: Files = {
    **VIRTUAL,
    "proc/self/cgroup": "4:memory:/docker/abc\n3:cpuset:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 10\nnr_throttled 0\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/cpuset/cpuset.cpus": "1\n",
}

ARM: Files = {
    **COMMON,
    **_cores(["0", "1", "2", "3"], [0, 0, 0, 0]),
    "proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd aes\nCPU implementer\t: 0x41\n"
    "CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n",
    f"{_CPU}/smt/control": "notsupported\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "arch_sys_counter\n",
    "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
    "sys/class/dmi/id/product_name": "m6g.xlarge\n",
}
