"""The readings as Prometheus metrics, and the dashboard that queries them."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.render.files.prometheus_file import GAUGES, full_name
from fairlap.watch.dashboard import PANELS, RACE_PANELS, dashboard
from fairlap.watch.metrics import PREFIX
from fairlap.watch.prometheus import ABSENT, BUILD, Server, address_in
from fairlap.watch.readings import METRICS, ReadingsNow, metrics_of
from prometheus_client.parser import text_string_to_metric_families
from watched_machine import NO_NVML, WatchedMachine, fake_nvml_path, fresh_fake_nvml, next_interval

TOP = Path(__file__).parents[3]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def machine(tmp_path: Path) -> WatchedMachine:
    return WatchedMachine(tmp_path)


def scraped(url: str) -> Samples:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of_name(samples: Samples, name: str) -> dict[frozenset[tuple[str, str]], float]:
    return {labels: value for (of, labels), value in samples.items() if of == PREFIX + name}


def test_a_scrape_has_values_in_base_units_with_their_device_and_source(machine: WatchedMachine) -> None:
    fresh_fake_nvml().fake_nvml_set_device_count(2)
    with (
        ReadingsNow(0.1, root=machine.root, nvml_library=fake_nvml_path()) as readings,
        Server(readings, "127.0.0.1", 0) as server,
    ):
        machine.energy_uj(6_000_000)
        next_interval(readings)
        samples = scraped(server.url)
    first = frozenset({("device", "0"), ("source", "nvml")})
    assert of_name(samples, "gpu_power_watts")[first] == 100.0
    assert of_name(samples, "gpu_sm_clock_hertz")[first] == 1980e6
    assert len(of_name(samples, "gpu_memory_used_bytes")) == 2
    zone = frozenset({("device", "intel-rapl:0 package-0"), ("source", "powercap")})
    assert of_name(samples, "cpu_energy_joules_total") == {zone: 6.0}
    assert of_name(samples, "source_present")[frozenset({("source", "powercap")})] == 1.0


def test_what_is_absent_has_no_sample_but_a_reason(machine: WatchedMachine) -> None:
    with (
        ReadingsNow(0.1, root=machine.root, nvml_library=NO_NVML) as readings,
        Server(readings, "127.0.0.1", 0) as server,
    ):
        samples = scraped(server.url)
    assert not any(name.startswith(f"{PREFIX}gpu_") for name, _ in samples)
    assert not of_name(samples, "cpu_clock_mean_hertz")
    assert of_name(samples, "source_present")[frozenset({("source", "nvml")})] == 0.0
    reasons = {dict(labels)["what"]: dict(labels)["reason"] for labels in of_name(samples, "absent_info")}
    assert NO_NVML in reasons["nvml"]


def test_a_counter_that_wrapped_never_falls_for_prometheus(machine: WatchedMachine) -> None:
    machine.energy_uj(262_143_000_000)
    with (
        ReadingsNow(0.1, root=machine.root, nvml_library=NO_NVML) as readings,
        Server(readings, "127.0.0.1", 0) as server,
    ):
        (before,) = of_name(scraped(server.url), "cpu_energy_joules_total").values()
        machine.energy_uj(1_000_000)
        next_interval(readings)
        (after,) = of_name(scraped(server.url), "cpu_energy_joules_total").values()
    assert after - before == pytest.approx(1.32885)


def test_a_port_in_use_is_an_error(machine: WatchedMachine) -> None:
    with (
        ReadingsNow(0.1, root=machine.root, nvml_library=NO_NVML) as readings,
        Server(readings, "127.0.0.1", 0) as server,
    ):
        port = int(server.url.rpartition(":")[2].removesuffix("/metrics"))
        with pytest.raises(NotAvailable, match=f"127.0.0.1:{port}: Address already in use"):
            Server(readings, "127.0.0.1", port)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9555", ("127.0.0.1", 9555)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:9555", ("0.0.0.0", 9555)),
        ("[::1]:9555", ("::1", 9555)),
        ("localhost:1", ("localhost", 1)),
    ],
)
def test_an_address_is_a_port_or_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert address_in(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", ":", ":80", "host:", "65536", "-1", "9" * 5000, "1.5", "::1:80", "[h]:1", "a b:80", "٣"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        address_in(text)


def test_names_follow_the_rules_of_prometheus() -> None:
    units = "watts|joules|hertz|bytes|celsius|ratio|seconds"
    for metric in METRICS:
        assert re.fullmatch(r"[a-z][a-z_]*", metric.name), metric.name
        assert not metric.name.endswith("_total"), "counters get _total"
        without_unit = ("gpu_clock_limited", "cpu_thermal_slowdowns", "control_group_throttled_periods")
        assert re.search(f"_({units})$", metric.name) or metric.name in without_unit, metric.name


def test_metrics_of_one_name_are_of_one_kind_and_have_the_same_labels() -> None:
    by_name: dict[str, set[tuple[bool, str, tuple[str, ...]]]] = {}
    for metric in METRICS:
        by_name.setdefault(metric.name, set()).add((metric.counter, metric.help, tuple(metric.labels)))
    assert all(len(kinds) == 1 for kinds in by_name.values())


def test_every_metric_of_the_dashboard_is_served() -> None:
    energy = metrics_of("powercap", "intel-rapl:0 package-0 energy_j")
    served = {metric.full_name for metric in [*METRICS, *energy]} | {ABSENT, BUILD}
    served |= {full_name(gauge, end) for gauge, _ in GAUGES for end in ("", "low", "high")}
    queried = set(re.findall(rf"\b{PREFIX}\w+", json.dumps(dashboard())))
    assert queried <= served
    assert {PREFIX + name for panel in (*PANELS, *RACE_PANELS) for name in panel.shown} <= queried


def test_the_dashboard_shows_counters_by_their_rate() -> None:
    targets = [target for panel in dashboard()["panels"] for target in panel["targets"]]
    for target in targets:
        assert ("_total{" in target["expr"]) == target["expr"].startswith("rate(")
        machine = "races" if f"{PREFIX}race_" in target["expr"] else "instance"
        assert f'{{instance=~"${machine}"}}' in target["expr"]


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    taken = [
        (column, row)
        for place in (panel["gridPos"] for panel in dashboard()["panels"])
        for column in range(place["x"], place["x"] + place["w"])
        for row in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(column for column, _ in taken) == 23
    numbers = [panel["id"] for panel in dashboard()["panels"]]
    assert len(numbers) == len(set(numbers))


def test_the_dashboard_of_the_documentation_is_the_one_that_the_command_prints() -> None:
    assert json.loads((TOP / "docs/examples/watch-dashboard.json").read_text()) == dashboard()
