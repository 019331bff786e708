"""Facts of a machine: read from files, counted from quotas and variables, and compared with those of another."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fairlap.machine.control_group import GroupUsage, cores_worth, group_usage, throttled
from fairlap.machine.differences import comparable_facts, differences, differences_text, lasting
from fairlap.machine.facts import machine_facts
from fairlap.machine.hardware.gpu import Gpu, Gpus
from fairlap.machine.root import Root, kilobytes, numbers_listed
from fairlap.machine.variables import NOT_KEPT, kept, variable_facts

from .machines import ARM, BARE_METAL, CONTAINER_V1, CONTAINER_V2, VIRTUAL, Files, built

_NO_GPU = Gpus(absent="not looked for")


def facts_of(tmp_path: Path, *layers: Files, **environment: str) -> dict[str, str]:
    return machine_facts(built(tmp_path / "root", *layers), environment, _NO_GPU, tmp_path)


def holds(facts: dict[str, str], **wanted: str) -> None:
    for name, value in wanted.items():
        assert facts.get(name.replace("_", " "), "") == value, name


def test_bare_metal_reports_its_cores_and_what_sets_its_clock(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, BARE_METAL)
    holds(
        facts,
        cpu_model="Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz",
        cores="8",
        architecture="x86_64",
        smt="on",
        threads_per_core="2",
        sockets="2",
        numa_nodes="2",
        caches="L1d 32 KiB for 2, L3 27.5 MiB for 4",
        governor="performance, powersave",
        frequency_driver="intel_pstate",
        turbo="on",
        base_frequency="2500 MHz",
        maximum_frequency="3900 MHz",
        frequency_limit="",
        hypervisor="no",
        virtualisation="none",
        memory="15.6 GiB",
        swap="none",
        huge_pages="madvise",
        kernel="6.1.0-13-amd64",
        distribution="Debian GNU/Linux 12 (bookworm)",
        clock_source="tsc",
        address_randomisation="on",
        mitigations="mds: Clear CPU buffers; meltdown: PTI",
        container="",
        cpu_limit="",
    )


def test_a_virtual_machine_reports_its_hypervisor_and_stolen_time(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, VIRTUAL)
    holds(facts, hypervisor="yes", virtualisation="KVM or QEMU", smt="none", governor="", turbo="")
    assert facts["steal so far"] == "5 %"


def test_a_virtual_machine_without_firmware_tables_is_recognised_by_its_clocks(tmp_path: Path) -> None:
    without = {path: text for path, text in VIRTUAL.items() if "dmi" not in path}
    holds(facts_of(tmp_path, without), virtualisation="KVM", hypervisor="yes")


def test_a_rented_whole_machine_is_not_virtual(tmp_path: Path) -> None:
    product = {"sys/class/dmi/id/sys_vendor": "Amazon EC2\n", "sys/class/dmi/id/product_name": "c5.metal\n"}
    holds(facts_of(tmp_path, BARE_METAL, product), virtualisation="none", hypervisor="no")


def test_a_container_of_version_2_has_the_tightest_limit_on_the_way_up(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, CONTAINER_V2)
    holds(facts, container="Kubernetes", cpu_limit="1.5", memory_limit="1 GiB", cores_of_the_group="0-1")


def test_a_container_of_version_1_finds_its_limits_at_the_top(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, CONTAINER_V1)
    holds(facts, container="Docker", cpu_limit="0.5", memory_limit="", cores_of_the_group="1")


def test_the_digest_of_an_image_comes_from_a_variable_or_from_podman(tmp_path: Path) -> None:
    digest = "sha256:" + "ab" * 32
    assert facts_of(tmp_path, VIRTUAL, IMAGE_DIGEST=f"some/image@{digest}")["image digest"] == digest
    podman = {"run/.containerenv": f'engine="podman"\nimageid="{digest}"\n'}
    holds(facts_of(tmp_path, VIRTUAL, podman), container="Podman", image_digest=digest)


def test_arm_has_a_name_for_its_number(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, ARM)
    holds(facts, cpu_model="Neoverse-N1", architecture="aarch64", virtualisation="Amazon EC2", cores="4")
    unknown = {"proc/cpuinfo": "Features : asimd\nCPU implementer : 0x99\nCPU part : 0x001\n"}
    holds(facts_of(tmp_path / "other", ARM, unknown), cpu_model="Arm implementer 0x99 part 0x001")


def test_a_machine_without_files_has_only_the_facts_of_the_interpreter(tmp_path: Path) -> None:
    facts = machine_facts(Root(tmp_path), {}, _NO_GPU, tmp_path)
    names = {name for name in facts if not name.startswith("package ")}
    assert names <= {"C library", "python", "python build", "operating system", "gpu"}


@pytest.mark.parametrize("path", sorted(BARE_METAL))
def test_garbage_in_any_file_breaks_nothing(tmp_path: Path, path: str) -> None:
    root = built(tmp_path / "root", BARE_METAL)
    (tmp_path / "root" / path).write_bytes(b"\xff\x00 garbage: [ - , 99999999999999999999-1 \n: :\n" * 3)
    assert machine_facts(root, {}, _NO_GPU, tmp_path)["python"]


def test_a_folder_in_place_of_a_file_reads_as_empty(tmp_path: Path) -> None:
    (tmp_path / "proc/cpuinfo").mkdir(parents=True)
    assert Root(tmp_path).text("proc/cpuinfo") == ""


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-2,5", [0, 1, 2, 5]), ("", []), ("7", [7]), ("3-1", []), ("a-b", []), ("0-99999999999", [])],
)
def test_the_kernels_lists_are_read_and_garbage_is_empty(text: str, numbers: list[int]) -> None:
    assert numbers_listed(text) == numbers


@pytest.mark.parametrize(("text", "size"), [("32K", 32), ("1024 kB", 1024), ("2M", 2048), ("1G", 1 << 20), ("x", None)])
def test_sizes_are_read_with_their_units(text: str, size: int | None) -> None:
    assert kilobytes(text) == size


_POD = "sys/fs/cgroup/kubepods.slice/pod1"


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        (BARE_METAL, 8),
        (CONTAINER_V2, 1),  # 1.5 cores
        (CONTAINER_V1, 1),  # half a core
        (CONTAINER_V2 | {f"{_POD}/cpu.max": "400000 100000\n"}, 4),
        (CONTAINER_V2 | {f"{_POD}/cpu.max": "3200000 100000\n"}, 8),
        (CONTAINER_V2 | {f"{_POD}/cpu.max": "max 100000\n"}, 8),
    ],
)
def test_threads_follow_the_quota(tmp_path: Path, files: Files, cores: int) -> None:
    assert cores_worth(8, built(tmp_path, files)) == cores


def test_what_a_quota_further_up_stops_is_counted(tmp_path: Path) -> None:
    files = CONTAINER_V2 | {
        f"{_POD}/cpu.stat": "nr_periods 100\nnr_throttled 30\nthrottled_usec 2000000\n",
        f"{_POD}/inner/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
    }
    found = throttled(built(tmp_path, files))
    assert found is not None
    assert (found.periods, found.throttled_periods, found.seconds) == (100, 30, 2.0)


def test_the_service_that_shares_a_gpu_is_a_fact_while_its_daemon_runs(tmp_path: Path) -> None:
    """The daemon writes its id into the folder of its pipes (NVIDIA's guide to MPS, tools and interface reference)."""
    daemon: Files = {"tmp/nvidia-mps/nvidia-cuda-mps-control.pid": "77\n"}
    moved: Files = {"run/pipes/nvidia-cuda-mps-control.pid": "77\n"}
    alive: Files = {"proc/77/status": "Name: nvidia-cuda-mps\n"}
    share = {"CUDA_MPS_PIPE_DIRECTORY": "/run/pipes", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}

    def service(folder: str, *layers: Files, **variables: str) -> str:
        root = built(tmp_path / folder, *layers)
        return machine_facts(root, variables, Gpus((Gpu(0, "H100"),)), tmp_path)["gpu mps"]

    assert service("ended", daemon) == "off"
    assert service("usual", daemon, alive) == "on"
    assert service("moved", moved, alive, **share) == "on, at most 25 % of the threads"
    assert "gpu mps" not in facts_of(tmp_path, daemon, alive)


def test_only_variables_that_affect_speed_are_recorded() -> None:
    given = {"OMP_NUM_THREADS": "2", "HOME": "/home/me", "AWS_SECRET_ACCESS_KEY": "x", "TF_VAR_password": "x"}
    assert variable_facts(given) == {"variable OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NVIDIA_API_KEY", "nvapi-123"),
        ("ORT_ACCESS_TOKEN", "abc"),
        ("JAX_DB_PASSWORD", "abc"),
        ("MKL_LICENSE_FILE", "27000@host"),
        ("XLA_FLAGS", "--cache_token=abc"),
        ("TORCH_HUB_CREDENTIALS", "abc"),
        ("LD_PRELOAD", "x.so password: abc"),
    ],
)
def test_a_value_that_looks_like_a_secret_is_not_recorded(name: str, value: str) -> None:
    assert variable_facts({name: value}) == {f"variable {name}": NOT_KEPT}


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("https://me:pw@host/path", "https://host/path"),
        ("https://me:p/w@host/path", "https://host/path"),
        ("https://me:p#?w@host/path", "https://host/path"),
        ("s3://bucket/cache?sig=abc&x=1", "s3://bucket/cache"),
        ("--a=1,https://t@host/x#frag --b", "--a=1,https://host/x --b"),
        ("", "set, but empty"),
    ],
)
def test_addresses_lose_their_login_and_their_query(value: str, stored: str) -> None:
    assert kept("JAX_COMPILATION_CACHE_DIR", value) == stored


def test_bytes_that_are_not_valid_utf8_can_be_stored() -> None:
    facts = variable_facts({"OMP_\udcff": "1", "XLA_FLAGS": "a\udcfe", "LD_PRELOAD": ""})
    assert msgspec.json.decode(msgspec.json.encode(facts)) == facts
    assert facts["variable XLA_FLAGS"] == "a?"


def test_a_long_value_is_cut_with_its_length() -> None:
    value = kept("XLA_FLAGS", "a" * 5000)
    assert len(value) < 600
    assert "5000" in value


_NOW = {"memory": "16 GiB", "kernel": "6.1"}


def test_a_difference_names_both_values() -> None:
    before, after = {"kernel": "6.1", "cores": "2"}, {"kernel": "6.8", "cores": "2", "governor": "powersave"}
    texts = [str(each) for each in differences(before, after)]
    assert texts == ["governor not recorded -> powersave", "kernel 6.1 -> 6.8"]


def test_facts_of_the_moment_differ_only_on_request() -> None:
    before, after = {"steal so far": "0.1%", "gpu 0 clock": "210 MHz"}, {"steal so far": "0.2%", "gpu 0 clock": "300"}
    assert differences(before, after) == []
    assert len(differences(before, after, momentary=True)) == 2


def test_facts_that_an_older_fairlap_did_not_look_for_are_only_counted() -> None:
    _, listed, counted = differences_text({"kernel": "6.1"}, _NOW | {"kernel": "6.8", "swap": "none"}).splitlines()
    assert (listed, " 2 facts " in counted) == ("  kernel 6.1 -> 6.8", True)


def test_a_fingerprint_depends_only_on_lasting_facts() -> None:
    passing = {"steal so far": "1%", "variable OMP_NUM_THREADS": "2", "package torch": "2.13.0", "git changes": "none"}
    assert lasting(_NOW | passing) == _NOW


def test_facts_that_only_a_newer_fairlap_records_are_ignored() -> None:
    old, new = comparable_facts({"kernel": "6.1"}, {"kernel": "6.1", "memory": "16 GiB", "variable OMP_A": "1"}, "cpu")
    assert old == new == {"kernel": "6.1"}


def test_a_variable_that_only_one_run_set_is_a_difference() -> None:
    old, new = comparable_facts(_NOW, _NOW | {"variable OMP_WAIT_POLICY": "passive"}, "cpu")
    assert [str(each) for each in differences(old, new)] == ["variable OMP_WAIT_POLICY not set -> passive"]


def test_a_governor_that_one_run_could_not_read_is_a_difference() -> None:
    old, new = comparable_facts(_NOW | {"governor": "powersave"}, _NOW, "cpu")
    assert differences(old, new)[0].name == "governor"


def test_a_gpu_counts_only_in_a_race_on_it() -> None:
    before = {"driver": "1", "gpu 0": "A100", "gpu 1": "H100", "gpu 1 power limit": "700 W"}
    after = {"driver": "2", "gpu 0": "B200", "gpu 1": "H200", "gpu 1 power limit": "600 W"}
    assert comparable_facts(before, after, "cpu") == ({}, {})
    old, new = comparable_facts(before, after, "cuda:1")
    assert old == {"driver": "1", "gpu": "H100", "gpu power limit": "700 W"}
    assert new == {"driver": "2", "gpu": "H200", "gpu power limit": "600 W"}


def test_what_a_group_of_version_2_uses_is_its_own_and_not_that_of_the_group_above(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/jobs/mine\n",
        "sys/fs/cgroup/jobs/mine/memory.current": "4096\n",
        "sys/fs/cgroup/jobs/memory.current": "9999\n",
        "sys/fs/cgroup/jobs/mine/cpu.stat": "usage_usec 2500000\nnr_throttled 3\nthrottled_usec 40000\n",
    }
    assert group_usage(built(tmp_path, files)) == GroupUsage(4096, None, 2.5, 0.04, 3)


def test_in_a_container_the_top_is_the_own_group(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/docker/0123456789\n", "sys/fs/cgroup/memory.current": "77\n"}
    assert group_usage(built(tmp_path, files)) == GroupUsage(77, None, None, None, None)


def test_what_a_group_of_version_1_uses_is_read_where_its_controllers_are(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/mine\n3:cpu,cpuacct:/mine\n0::/\n",
        "sys/fs/cgroup/memory/mine/memory.usage_in_bytes": "512\n",
        "sys/fs/cgroup/memory/mine/memory.max_usage_in_bytes": "1024\n",
        "sys/fs/cgroup/cpu,cpuacct/mine/cpuacct.usage": "1500000000\n",
        "sys/fs/cgroup/cpu,cpuacct/mine/cpu.stat": "nr_throttled 2\nthrottled_time 250000000\n",
    }
    assert group_usage(built(tmp_path, files)) == GroupUsage(512, 1024, 1.5, 0.25, 2)
