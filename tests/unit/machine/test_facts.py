"""Facts read from machines made of files."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairlap.machine.facts import machine_facts
from fairlap.machine.gpu import Gpus
from fairlap.machine.root import Root, kilobytes, numbers_listed

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
