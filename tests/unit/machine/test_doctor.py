"""What the doctor finds, on machines made of files."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fairlap.explanations import explanations
from fairlap.machine.doctor import examination
from fairlap.machine.doctor.examination import CHECKS, Check, findings_of
from fairlap.machine.doctor.finding import Examined, Finding, Severity, exit_status, findings_text
from fairlap.machine.doctor.observation import BusyProcess, Observed
from fairlap.machine.facts import machine_facts
from fairlap.machine.hardware.gpu import Gpu, Gpus
from fairlap.machine.hardware.gpu_links import NvLinks
from fairlap.machine.root import THIS_MACHINE, Root

from .machines import ARM, BARE_METAL, CONTAINER_V1, CONTAINER_V2, VIRTUAL, Files, built

_QUIET = Observed(1.0, steal_share=0.0, waited_share=0.0, memory_waited_share=0.0, pages_swapped=0, thermal_events=None)
_NO_GPU = Gpus(absent="not looked for")
_CLOCK = {"source": "tsc", "quantum_ns": 10.0, "overhead_ns": 40.0}
_CPU = "sys/devices/system/cpu"
_HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"


def seen(
    tmp_path: Path, *layers: Files, observed: Observed = _QUIET, gpus: Gpus = _NO_GPU, clock: dict[str, object] = _CLOCK
) -> Examined:
    root = built(tmp_path / "root", *layers)
    return Examined(root, machine_facts(root, {}, gpus, tmp_path), observed, gpus, clock)


def found(examined: Examined, check: str) -> Finding:
    [one] = [finding for finding in findings_of(examined) if finding.check == check]
    assert one.code == "" if one.severity == "good" else one.code in explanations()
    return one


def severities(examined: Examined) -> dict[str, Severity]:
    return {finding.check: finding.severity for finding in findings_of(examined)}


def test_an_untuned_desktop_has_warnings_with_remedies(tmp_path: Path) -> None:
    examined = seen(tmp_path, BARE_METAL)
    by_check = severities(examined)
    assert {by_check[check] for check in ("governor", "turbo", "hardware_threads", "thermal")} == {"warning"}
    assert found(examined, "governor").remedy == "sudo cpupower frequency-set --governor performance"
    assert "1.56 times" in found(examined, "turbo").found
    assert "intel_pstate/no_turbo" in found(examined, "turbo").remedy
    assert found(examined, "hardware_threads").remedy.startswith("taskset -c 0,1,2,3 ")
    assert "15 times" in found(examined, "thermal").found
    assert exit_status(findings_of(examined)) == 1


def test_a_tuned_machine_is_fit(tmp_path: Path) -> None:
    tuned = {
        f"{_CPU}/cpufreq/policy0/scaling_governor": "performance\n",
        f"{_CPU}/intel_pstate/no_turbo": "1\n",
        f"{_CPU}/cpu0/thermal_throttle/core_throttle_count": "0\n",
        f"{_CPU}/cpu1/thermal_throttle/core_throttle_count": "0\n",
        **{f"{_CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu}\n" for cpu in range(8)},
    }
    examined = seen(tmp_path, BARE_METAL, tuned)
    assert exit_status(findings_of(examined)) == 0
    assert {check for check, severity in severities(examined).items() if severity != "good"} == {"gpu"}


_GIB_LEFT = "MemTotal: 1048576 kB\nMemAvailable: 900000 kB\n"
_SWAP_IN_USE = {"proc/meminfo": f"{_GIB_LEFT}SwapTotal: 2048 kB\nSwapFree: 1024 kB\n"}
_SOURCES = "sys/devices/system/clocksource/clocksource0"


@pytest.mark.parametrize(
    ("machine", "changed", "observed", "check", "severity"),
    [
        pytest.param(BARE_METAL, {}, Observed(1.0, thermal_events=3), "thermal", "bad", id="hot now"),
        (BARE_METAL, {"proc/self/status": "Cpus_allowed_list:\t0-3\n"}, _QUIET, "hardware_threads", "note"),
        (BARE_METAL, {f"{_SOURCES}/current_clocksource": "hpet\n"}, _QUIET, "clock_source", "warning"),
        pytest.param(VIRTUAL, {}, _QUIET, "governor", "note", id="governor of the host"),
        # 5 % of the time was stolen since the start.
        pytest.param(VIRTUAL, {}, Observed(1.0, steal_share=0.01), "stolen_time", "warning", id="stolen before"),
        pytest.param(VIRTUAL, {}, Observed(1.0, steal_share=0.2), "stolen_time", "bad", id="stolen now"),
        (VIRTUAL, {"proc/stat": "cpu  1000 0 500 8000 0 0 0 5 0 0\n"}, _QUIET, "stolen_time", "good"),
        (CONTAINER_V1, {}, _QUIET, "quota", "bad"),
        pytest.param(CONTAINER_V2, {}, _QUIET, "memory_limit", "warning", id="memory limit"),
        (ARM, _SWAP_IN_USE, _QUIET, "swap", "note"),
        pytest.param(ARM, _SWAP_IN_USE, Observed(1.0, pages_swapped=5), "swap", "bad", id="swapping"),
        (ARM, {"proc/meminfo": "MemTotal: 1048576 kB\nMemAvailable: 52428 kB\n"}, _QUIET, "memory", "warning"),
        pytest.param(ARM, {}, Observed(1.0, memory_waited_share=0.3), "memory", "bad", id="waits for memory"),
        (ARM, {_HUGE_PAGES: "always [madvise] never\n"}, _QUIET, "huge_pages", "good"),
        (ARM, {_HUGE_PAGES: "always madvise [never]\n"}, _QUIET, "huge_pages", "warning"),
        (ARM, {_HUGE_PAGES: "[always] madvise never\n"}, _QUIET, "huge_pages", "note"),
        (ARM, {"proc/sys/kernel/randomize_va_space": "0\n"}, _QUIET, "address_randomisation", "warning"),
    ],
)
def test_a_check_has_the_severity_of_what_it_found(
    tmp_path: Path, machine: Files, changed: Files, observed: Observed, check: str, severity: Severity
) -> None:
    assert found(seen(tmp_path, machine, changed, observed=observed), check).severity == severity


@pytest.mark.parametrize(
    ("busy", "cores", "severity"), [(0.05, 2, "good"), (0.3, 2, "warning"), (1.0, 2, "bad"), (0.6, 8, "warning")]
)
def test_neighbours_are_weighed_by_the_cores_that_they_take(
    tmp_path: Path, busy: float, cores: int, severity: Severity
) -> None:
    status = {"proc/self/status": f"Cpus_allowed_list:\t0-{cores - 1}\n"}
    observed = Observed(1.0, others_busy_cores=busy, busiest=(BusyProcess(17, "ninja", busy),), waited_share=0.4)
    finding = found(seen(tmp_path, BARE_METAL, status, observed=observed), "neighbours")
    assert finding.severity == severity
    assert ("ninja (17," in finding.found) == (severity != "good")


@pytest.mark.parametrize(
    ("version", "filters", "severity"), [(7, True, "good"), (3, True, "good"), (2, True, "note"), (0, False, "note")]
)
def test_what_a_sandbox_lacks_is_a_note(
    monkeypatch: pytest.MonkeyPatch, version: int, filters: bool, severity: Severity
) -> None:
    monkeypatch.setattr(examination, "landlock_version", lambda: version)
    monkeypatch.setattr(examination, "has_seccomp", lambda: filters)
    [finding] = examination.check_sandbox(Examined(THIS_MACHINE, {}, _QUIET, _NO_GPU))
    assert finding.severity == severity
    assert finding.code in ("", *explanations())
    assert exit_status([finding]) == 0


def test_neighbours_outside_of_the_container_count_too(tmp_path: Path) -> None:
    assert found(seen(tmp_path, VIRTUAL, observed=Observed(1.0, others_busy_cores=1.0)), "neighbours").severity == "bad"


def test_a_quota_below_the_cores_names_the_threads_that_fit(tmp_path: Path) -> None:
    examined = seen(tmp_path, CONTAINER_V2)
    finding = found(examined, "quota")
    assert (finding.severity, "1.5 cores" in finding.found, "--threads 1" in finding.remedy) == ("bad", True, True)
    assert "50 of 200 periods (25 %)" in found(examined, "throttling").found
    assert exit_status(findings_of(examined)) == 2


def test_a_slow_clock_source_has_a_command_as_remedy_only_where_a_fast_one_is_available(tmp_path: Path) -> None:
    slow = {f"{_SOURCES}/current_clocksource": "hpet\n"}
    only = slow | {f"{_SOURCES}/available_clocksource": "hpet acpi_pm\n"}
    assert found(seen(tmp_path / "1", BARE_METAL, slow), "clock_source").remedy.startswith("echo tsc")
    assert "echo" not in found(seen(tmp_path / "2", BARE_METAL, only), "clock_source").remedy


def test_a_distrusted_counter_and_a_coarse_clock_are_warnings(tmp_path: Path) -> None:
    distrusted = found(seen(tmp_path, ARM, clock=_CLOCK | {"counter_distrust": "it is not invariant"}), "timer")
    assert (distrusted.severity, "not invariant" in distrusted.found) == ("warning", True)
    coarse = found(seen(tmp_path, ARM, clock=_CLOCK | {"quantum_ns": 1000.0}), "timer")
    assert (coarse.severity, "10.0 us" in coarse.effect) == ("warning", True)


_READY_GPU = Gpu(0, "A100", sm_mhz=1410, most_sm_mhz=1410, persistence=True, ecc=True, mig=False, processes=())


def test_a_tuned_gpu_is_good(tmp_path: Path) -> None:
    finding = found(seen(tmp_path, ARM, gpus=Gpus((_READY_GPU,))), "gpu")
    assert (finding.severity, finding.name) == ("good", "gpu 0")


@pytest.mark.parametrize(
    ("gpu", "check", "severity"),
    [
        (Gpu(1, "A100", persistence=False), "gpu_persistence", "warning"),
        (Gpu(1, "A100", sm_mhz=210, most_sm_mhz=1410, clock_reasons=1), "gpu_clocks", "warning"),
        (Gpu(1, "A100", clock_reasons=0x40), "gpu_thermal", "bad"),
        (Gpu(1, "A100", clock_reasons=0x80), "gpu_power", "bad"),
        (Gpu(1, "A100", processes=(1, 2)), "gpu_processes", "bad"),
        (Gpu(1, "A100", power_limit_mw=300_000, default_power_limit_mw=400_000), "gpu_power_limit", "warning"),
        (Gpu(1, "A100", mig=True), "gpu_mig", "note"),
        (Gpu(1, "A10", ecc=False), "gpu_ecc", "note"),
        (Gpu(1, "A10", pcie_width=8, most_pcie_width=16), "gpu_link", "warning"),
        (Gpu(1, "H100", nvlinks=NvLinks(17, 18, "4.0")), "gpu_nvlink", "warning"),
    ],
)
def test_what_disturbs_on_a_gpu_is_found(tmp_path: Path, gpu: Gpu, check: str, severity: Severity) -> None:
    finding = found(seen(tmp_path, ARM, gpus=Gpus((gpu,))), check)
    assert (finding.severity, finding.gpu) == (severity, 1)
    assert finding.name.startswith("gpu 1 ")
    assert finding.effect
    assert finding.remedy


def test_a_gpu_whose_nvlinks_are_all_active_is_good(tmp_path: Path) -> None:
    tuned = replace(_READY_GPU, nvlinks=NvLinks(18, 18, "4.0"))
    assert found(seen(tmp_path, ARM, gpus=Gpus((tuned,))), "gpu").severity == "good"


def test_an_idle_gpu_whose_clock_fell_is_not_locked(tmp_path: Path) -> None:
    gpu = Gpu(0, "A100", sm_mhz=210, most_sm_mhz=1410, clock_reasons=1)
    finding = found(seen(tmp_path, ARM, gpus=Gpus((gpu,))), "gpu_clocks")
    assert "idle" in finding.found
    assert "6.7 times" in finding.effect


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_check_works_on_a_machine_that_shows_nothing(tmp_path: Path, check: Check) -> None:
    nothing = Examined(Root(tmp_path), {}, Observed(1.0), _NO_GPU, clock_absent="it is broken")
    assert all(finding.check and finding.found for finding in check(nothing))


@pytest.mark.parametrize("layers", [BARE_METAL, VIRTUAL, CONTAINER_V1, CONTAINER_V2, ARM])
def test_every_warning_names_its_effect_and_nothing_good_has_a_remedy(tmp_path: Path, layers: Files) -> None:
    for finding in findings_of(seen(tmp_path, layers)):
        assert bool(finding.effect) >= (finding.severity in ("warning", "bad")), finding
        assert finding.severity != "good" or not finding.remedy


def test_the_most_severe_comes_first_and_commands_are_never_broken(tmp_path: Path) -> None:
    findings = findings_of(seen(tmp_path, CONTAINER_V2))
    assert findings[0].severity == "bad"
    text = findings_text(findings)
    assert text.splitlines()[1].startswith("BAD")
    assert all(finding.remedy in text for finding in findings)


@pytest.mark.parametrize(
    ("worst", "status"), [("good", 0), ("note", 0), ("warning", 1), ("bad", 2)], ids=["good", "note", "warning", "bad"]
)
def test_the_exit_status_follows_the_most_severe(worst: Severity, status: int) -> None:
    assert exit_status([Finding("a", "good", "x"), Finding("b", worst, "x")]) == status


@pytest.mark.sanitized
def test_the_command_prints_text_and_json() -> None:
    command = [sys.executable, "-m", "fairlap", "doctor", "--seconds", "0.1"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60)
    document = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60).stdout)
    assert text.stdout.startswith("This machine ")
    assert {"neighbours", "timer"} <= {finding["check"] for finding in document["findings"]}
    assert document["exit_status"] in (0, 1, 2)
    assert {"facts", "observed"} <= set(document)


@pytest.mark.sanitized
@pytest.mark.parametrize("seconds", ["0", "nan"])
def test_an_impossible_time_is_refused(seconds: str) -> None:
    command = [sys.executable, "-m", "fairlap", "doctor", "--seconds", seconds]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert "seconds" in refused.stderr
