"""A real Prometheus server scrapes ``fairlap watch --serve`` and returns our values."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fairlap.watch.dashboard import dashboard
from watched_machine import WatchedMachine, fake_nvml_path

PROMETHEUS = shutil.which("prometheus")
PROMTOOL = shutil.which("promtool")
WATTS = 40.0
PATIENCE_S = 60.0
pytestmark = [
    pytest.mark.sanitized,
    pytest.mark.skipif(
        PROMETHEUS is None, reason="no prometheus here; on Debian: apt-get install --no-install-recommends prometheus"
    ),
]

Answer = list[dict[str, Any]]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def end(process: subprocess.Popen[Any]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Burning:
    """The processor draws constant power inside the ``with`` block."""

    def __init__(self, machine: WatchedMachine) -> None:
        self._machine = machine
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._burn)

    def _burn(self) -> None:
        began_s = time.monotonic()
        while not self._over.wait(0.02):
            self._machine.energy_uj(5_000_000 + round((time.monotonic() - began_s) * WATTS * 1e6))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve readings, and yield the address that is scraped."""
    machine = WatchedMachine(tmp_path_factory.mktemp("machine"))
    with Burning(machine):
        running = subprocess.Popen(
            [sys.executable, "-m", "fairlap", "watch", "--serve", "0", "--interval", "0.2", "--root", machine.root],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "FAIRLAP_LIBNVML": fake_nvml_path()},
        )
        try:
            assert running.stderr is not None
            announced = next(line for line in running.stderr if "http://" in line)
            yield announced.split("http://")[1].split("/metrics")[0]
        finally:
            end(running)
            if running.stderr is not None:
                running.stderr.close()


@pytest.fixture(scope="module")
def prometheus(watched: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Answer]]:
    """Start the server, and yield what queries it, as Grafana does."""
    folder = tmp_path_factory.mktemp("prometheus")
    address = f"127.0.0.1:{free_port()}"
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 500ms, scrape_timeout: 400ms}\n"
        f"scrape_configs: [{{job_name: fairlap, static_configs: [{{targets: ['{watched}']}}]}}]\n"
    )
    log = (folder / "log").open("wb")
    assert PROMETHEUS is not None
    running = subprocess.Popen(
        [
            PROMETHEUS,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
        ],
        stdout=log,
        stderr=log,
    )

    def ask(query: str) -> Answer:
        url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            document = json.load(answer)
        assert document["status"] == "success"
        result: Answer = document["data"]["result"]
        return result

    try:
        until_there(lambda: ask("fairlap_build_info"), running, folder / "log")
        yield ask
    finally:
        end(running)
        log.close()


def until_there(
    ask: Callable[[], Answer], running: subprocess.Popen[Any] | None = None, log: Path | None = None
) -> Answer:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        assert running is None or running.poll() is None, log and log.read_text()
        try:
            if answer := ask():
                return answer
        except urllib.error.URLError:  # not up yet
            pass
        time.sleep(0.2)
    raise AssertionError(f"no answer within {PATIENCE_S:g} s: {log.read_text() if log else ''}")


def only_value(answer: Answer) -> float:
    assert len(answer) == 1, answer
    return float(answer[0]["value"][1])


def test_prometheus_has_the_power_of_the_gpu(prometheus: Callable[[str], Answer]) -> None:
    (power,) = until_there(lambda: prometheus("fairlap_gpu_power_watts"))
    assert power["metric"]["device"] == "0"
    assert power["metric"]["source"] == "nvml"
    assert float(power["value"][1]) == 100.0
    assert only_value(prometheus("fairlap_gpu_sm_clock_hertz")) == 1980e6
    assert only_value(prometheus("fairlap_gpu_memory_used_bytes / fairlap_gpu_memory_size_bytes")) == 1 / 16


def test_the_rate_of_the_energy_is_the_power_of_the_processor(prometheus: Callable[[str], Answer]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    watts = 0.0
    # The rate settles once its window contains some scrapes.
    while abs(watts - WATTS) > 0.1 * WATTS and time.monotonic() < deadline_s:
        time.sleep(0.5)
        watts = only_value(until_there(lambda: prometheus("rate(fairlap_cpu_energy_joules_total[10s])")))
    assert watts == pytest.approx(WATTS, rel=0.1)


def test_what_is_absent_has_no_number_but_a_reason(prometheus: Callable[[str], Answer]) -> None:
    assert prometheus("fairlap_cpu_clock_mean_hertz") == []
    assert only_value(prometheus('fairlap_source_present{source="cpu_frequency"}')) == 0.0
    (absent,) = prometheus('fairlap_absent_info{what="cpu_frequency"}')
    assert absent["metric"]["reason"]


def test_prometheus_answers_every_query_of_the_dashboard(prometheus: Callable[[str], Answer]) -> None:
    answered = set()
    until_there(lambda: prometheus("rate(fairlap_pressure_some_seconds_total[10s])"))
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "10s").replace("$instance", ".*")
            if prometheus(query):
                answered.add(panel["title"])
    assert {"GPU power", "Processor power", "GPU clocks", "GPU memory", "Memory", "Absent, with the reason"} <= answered
    assert {"Pressure, share of time", "Cores busy and stolen"} <= answered


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool here")
def test_promtool_accepts_the_metrics(watched: str) -> None:
    with urllib.request.urlopen(f"http://{watched}/metrics", timeout=10) as answer:
        metrics = answer.read()
    assert PROMTOOL is not None
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=metrics, capture_output=True, timeout=60)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
