"""What the doctor finds on machines that are not at hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fairlap.machine.doctor.examination import CHECKS, findings_of
from fairlap.machine.doctor.finding import Examined, Finding, Severity, exit_status, findings_text
from fairlap.machine.doctor.observation import BusyProcess, Observed
from fairlap.machine.facts import machine_facts
from fairlap.machine.gpu import Gpu, Gpus
from fairlap.machine.root import Root

from .machines import ARM, BARE_METAL, CONTAINER_V1, CONTAINER_V2, VIRTUAL, Files, built

_QUIET = Observed(1.0, steal_share=0.0, waited_share=0.0, memory_waited_share=0.0, pages_swapped=0, thermal_events=None)
_NO_GPU = Gpus(absent="not looked for")
_CLOCK = {"source": "tsc", "quantum_ns": 10.0, "overhead_ns": 40.0}
_CPU = "sys/devices/system/cpu"


def seen(
    tmp_path: Path, *layers: Files, observed: Observed = _QUIET, gpus: Gpus = _NO_GPU, clock: dict[str, object] = _CLOCK
) -> Examined:
    root = built(tmp_path / "root", *layers)
    return Examined(root, machine_facts(root, {}, gpus, tmp_path), observed, gpus, clock)


def found(examined: Examined, name: str) -> Finding:
    (one,) = [finding for finding in findings_of(examined) if finding.name == name]
    return one


def severities(examined: Examined) -> dict[str, Severity]:
    return {finding.name: finding.severity for finding in findings_of(examined)}


def test_a_desktop_as_it_is_sold_has_warnings_that_name_their_remedies(tmp_path: Path) -> None:
    examined = seen(tmp_path, BARE_METAL)
    told = severities(examined)
    assert told["governor"] == told["turbo"] == told["hardware threads"] == told["heat"] == "warning"
    assert found(examined, "governor").mend == "sudo cpupower frequency-set --governor performance"
    assert "1.56 times the base clock" in found(examined, "turbo").found
    assert "intel_pstate/no_turbo" in found(examined, "turbo").mend
    assert found(examined, "hardware threads").mend.startswith("taskset -c 0,1,2,3 ")
    assert "15 times since the machine started" in found(examined, "heat").found
    assert exit_status(findings_of(examined)) == 1


def test_a_machine_that_was_made_ready_is_fit(tmp_path: Path) -> None:
    ready = {
        f"{_CPU}/cpufreq/policy0/scaling_governor": "performance\n",
        f"{_CPU}/intel_pstate/no_turbo": "1\n",
        f"{_CPU}/cpu0/thermal_throttle/core_throttle_count": "0\n",
        f"{_CPU}/cpu1/thermal_throttle/core_throttle_count": "0\n",
        **{f"{_CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu}\n" for cpu in range(8)},
    }
    examined = seen(tmp_path, BARE_METAL, ready)
    assert exit_status(findings_of(examined)) == 0
    assert {name for name, severity in severities(examined).items() if severity != "good"} == {"gpu"}


def test_siblings_that_fairlap_may_not_use_are_a_note(tmp_path: Path) -> None:
    examined = seen(tmp_path, BARE_METAL, {"proc/self/status": "Cpus_allowed_list:\t0-3\n"})
    assert found(examined, "hardware threads").severity == "note"


def test_a_virtual_machine_that_hides_its_governor_says_so(tmp_path: Path) -> None:
    assert "cannot be read in this virtual machine" in found(seen(tmp_path, VIRTUAL), "governor").found


@pytest.mark.parametrize(("now", "severity"), [(0.01, "warning"), (0.05, "warning"), (0.2, "bad")])
def test_stolen_time_counts_now_and_since_the_start(tmp_path: Path, now: float, severity: Severity) -> None:
    observed = Observed(1.0, steal_share=now)  # and 5 % since the start
    assert found(seen(tmp_path, VIRTUAL, observed=observed), "stolen time").severity == severity


def test_little_stolen_time_is_good(tmp_path: Path) -> None:
    stat = {"proc/stat": "cpu  1000 0 500 8000 0 0 0 5 0 0\n"}
    assert found(seen(tmp_path, VIRTUAL, stat), "stolen time").severity == "good"


@pytest.mark.parametrize(
    ("busy", "cores", "severity"), [(0.05, 2, "good"), (0.3, 2, "warning"), (1.0, 2, "bad"), (0.6, 8, "warning")]
)
def test_neighbours_weigh_by_what_they_take(tmp_path: Path, busy: float, cores: int, severity: Severity) -> None:
    status = {"proc/self/status": f"Cpus_allowed_list:\t0-{cores - 1}\n"}
    observed = Observed(1.0, others_busy_cores=busy, busiest=(BusyProcess(17, "ninja", busy),), waited_share=0.4)
    finding = found(seen(tmp_path, BARE_METAL, status, observed=observed), "neighbours")
    assert finding.severity == severity
    assert ("ninja (17," in finding.found) == (severity != "good")


def test_neighbours_that_cannot_be_seen_are_said_to_be_there(tmp_path: Path) -> None:
    observed = Observed(1.0, others_busy_cores=1.0)
    assert "cannot be seen from here" in found(seen(tmp_path, VIRTUAL, observed=observed), "neighbours").found


def test_a_quota_below_the_cores_is_bad_and_names_the_threads_that_fit(tmp_path: Path) -> None:
    examined = seen(tmp_path, CONTAINER_V2)
    finding = found(examined, "quota")
    assert (finding.severity, "1.5 cores, and 2 can be seen" in finding.found) == ("bad", True)
    assert "--threads 1" in finding.mend
    assert "50 of 200 periods (25.0%)" in found(examined, "throttling").found
    assert found(examined, "memory limit").severity == "warning"
    assert exit_status(findings_of(examined)) == 2


def test_a_quota_of_version_1_is_found_too(tmp_path: Path) -> None:
    assert found(seen(tmp_path, CONTAINER_V1), "quota").severity == "bad"


def test_swap_that_moves_is_bad_and_swap_that_rests_is_a_note(tmp_path: Path) -> None:
    used = {"proc/meminfo": "MemTotal: 100 kB\nMemAvailable: 90 kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\n"}
    assert found(seen(tmp_path, ARM, used), "swap").severity == "note"
    moving = Observed(1.0, pages_swapped=5)
    assert found(seen(tmp_path, ARM, used, observed=moving), "swap").severity == "bad"


def test_memory_that_is_short_is_told(tmp_path: Path) -> None:
    scarce = {"proc/meminfo": "MemTotal: 1048576 kB\nMemAvailable: 52428 kB\n"}
    assert found(seen(tmp_path, ARM, scarce), "memory").severity == "warning"
    waiting = Observed(1.0, memory_waited_share=0.3)
    assert found(seen(tmp_path, ARM, observed=waiting), "memory").severity == "bad"


@pytest.mark.parametrize(
    ("setting", "severity"),
    [("always [madvise] never", "good"), ("always madvise [never]", "warning"), ("[always] madvise never", "note")],
)
def test_the_setting_of_huge_pages_is_judged(tmp_path: Path, setting: str, severity: Severity) -> None:
    files = {"sys/kernel/mm/transparent_hugepage/enabled": f"{setting}\n"}
    assert found(seen(tmp_path, ARM, files), "huge pages").severity == severity


def test_a_slow_clock_source_has_a_remedy_where_there_is_a_quick_one(tmp_path: Path) -> None:
    folder = "sys/devices/system/clocksource/clocksource0"
    finding = found(seen(tmp_path, BARE_METAL, {f"{folder}/current_clocksource": "hpet\n"}), "clock source")
    assert finding.severity == "warning"
    assert finding.mend.startswith("echo tsc")
    only = {f"{folder}/current_clocksource": "hpet\n", f"{folder}/available_clocksource": "hpet acpi_pm\n"}
    assert "ask the host" in found(seen(tmp_path, BARE_METAL, only), "clock source").mend


def test_a_counter_that_is_not_trusted_and_a_coarse_clock_are_warnings(tmp_path: Path) -> None:
    distrusted = _CLOCK | {"source": "monotonic_raw", "counter_distrust": "it is not invariant"}
    assert "not invariant" in found(seen(tmp_path, ARM, clock=distrusted), "timer").found
    coarse = found(seen(tmp_path, ARM, clock=_CLOCK | {"quantum_ns": 1000.0}), "timer")
    assert (coarse.severity, "10.0 us" in coarse.effect) == ("warning", True)


def test_heat_while_watching_is_bad(tmp_path: Path) -> None:
    hot = Observed(1.0, thermal_events=3)
    assert found(seen(tmp_path, BARE_METAL, observed=hot), "heat").severity == "bad"


def test_a_fixed_layout_of_addresses_is_a_warning(tmp_path: Path) -> None:
    fixed = {"proc/sys/kernel/randomize_va_space": "0\n"}
    assert found(seen(tmp_path, ARM, fixed), "address randomisation").severity == "warning"


_READY_GPU = Gpu(0, "A100", sm_mhz=1410, most_sm_mhz=1410, persistence=True, ecc=True, mig=False, processes=())


def test_a_gpu_that_was_made_ready_is_good(tmp_path: Path) -> None:
    assert found(seen(tmp_path, ARM, gpus=Gpus((_READY_GPU,))), "gpu 0").severity == "good"


@pytest.mark.parametrize(
    ("gpu", "name", "severity"),
    [
        (Gpu(1, "A100", persistence=False), "gpu 1 persistence", "warning"),
        (Gpu(1, "A100", sm_mhz=210, most_sm_mhz=1410, clock_reasons=1), "gpu 1 clocks", "warning"),
        (Gpu(1, "A100", clock_reasons=0x40), "gpu 1 heat", "bad"),
        (Gpu(1, "A100", clock_reasons=0x80), "gpu 1 power", "bad"),
        (Gpu(1, "A100", processes=(1, 2)), "gpu 1 processes", "bad"),
        (Gpu(1, "A100", power_limit_mw=300_000, default_power_limit_mw=400_000), "gpu 1 power limit", "warning"),
        (Gpu(1, "A100", mig=True), "gpu 1 mig", "note"),
        (Gpu(1, "A10", ecc=False), "gpu 1 ecc", "note"),
        (Gpu(1, "A10", pcie_width=8, most_pcie_width=16), "gpu 1 link", "warning"),
    ],
)
def test_what_disturbs_on_a_gpu_is_found(tmp_path: Path, gpu: Gpu, name: str, severity: Severity) -> None:
    finding = found(seen(tmp_path, ARM, gpus=Gpus((gpu,))), name)
    assert finding.severity == severity
    assert finding.effect
    assert finding.mend


def test_an_idle_gpu_whose_clock_fell_is_not_locked(tmp_path: Path) -> None:
    gpu = Gpu(0, "A100", sm_mhz=210, most_sm_mhz=1410, clock_reasons=1)
    finding = found(seen(tmp_path, ARM, gpus=Gpus((gpu,))), "gpu 0 clocks")
    assert "it is idle, so they are not locked" in finding.found
    assert "6.7 times" in finding.effect


@pytest.mark.parametrize("judge", CHECKS, ids=lambda judge: judge.__name__)
def test_a_machine_that_tells_nothing_is_judged_without_fail(tmp_path: Path, judge: object) -> None:
    nothing = Examined(Root(tmp_path), {}, Observed(1.0), _NO_GPU, clock_absent="it is broken")
    assert callable(judge)
    assert all(finding.name and finding.found for finding in judge(nothing))


@pytest.mark.parametrize("layers", [BARE_METAL, VIRTUAL, CONTAINER_V1, CONTAINER_V2, ARM])
def test_whatever_is_wrong_says_what_it_does_and_only_that_has_a_remedy(tmp_path: Path, layers: Files) -> None:
    for finding in findings_of(seen(tmp_path, layers)):
        assert bool(finding.effect) >= (finding.severity in ("warning", "bad")), finding
        assert finding.severity != "good" or not finding.mend


def test_the_worst_comes_first_and_commands_are_never_broken(tmp_path: Path) -> None:
    findings = findings_of(seen(tmp_path, CONTAINER_V2))
    assert findings[0].severity == "bad"
    text = findings_text(findings)
    assert text.startswith("This machine is not fit to measure on as it is.\nBAD")
    assert all(finding.mend in text for finding in findings)


@pytest.mark.parametrize(
    ("worst", "status"), [("good", 0), ("note", 0), ("warning", 1), ("bad", 2)], ids=["good", "note", "warning", "bad"]
)
def test_the_exit_status_follows_the_worst(worst: Severity, status: int) -> None:
    assert exit_status([Finding("a", "good", "x"), Finding("b", worst, "x")]) == status


@pytest.mark.sanitized
def test_the_command_tells_of_this_machine_as_text_and_as_json() -> None:
    command = [sys.executable, "-m", "fairlap", "doctor", "--seconds", "0.1"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert told.stdout.startswith("This machine ")
    document = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60).stdout)
    assert {"neighbours", "timer", "gpu"} <= {finding["name"].split(" ")[0] for finding in document["findings"]}
    assert document["exit_status"] in (0, 1, 2)
    assert {"facts", "observed"} <= set(document)


@pytest.mark.sanitized
@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_senseless_time_to_watch_is_refused(seconds: str) -> None:
    command = [sys.executable, "-m", "fairlap", "doctor", "--seconds", seconds]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert told.returncode == 2
    assert "seconds" in told.stderr
