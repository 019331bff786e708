"""``fairlap watch`` for users: in a terminal, in a pipe, as JSON, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from command_line import error_code, here
from fairlap.watch.series import NO_ENERGY_COUNTED
from watched_machine import WatchedMachine, fake_nvml_path

pytestmark = pytest.mark.sanitized


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "FAIRLAP_LIBNVML": fake_nvml_path(), **variables}


def fairlap(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlap", "watch", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(**variables),
    )


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fairlap", "watch", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(PYTHONUNBUFFERED="1"),
    )


@pytest.fixture
def root(tmp_path: Path) -> str:
    return WatchedMachine(tmp_path).root


def test_a_pipe_gets_one_line_per_interval_and_absences_on_stderr(root: str) -> None:
    done = fairlap("--seconds", "0.5", "--interval", "0.25", "--root", root)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all("GPU 0: power 100 W" in line and "\x1b" not in line for line in lines)
    assert "absent: cpu_frequency: " in done.stderr


def test_json_lines_contain_every_number_and_the_reason_of_every_absence(root: str) -> None:
    done = fairlap("--json", "--once", "--interval", "0.2", "--root", root)
    line = json.loads(done.stdout)
    assert done.stderr == ""
    power = {"name": "gpu_power_watts", "labels": {"source": "nvml", "device": "0"}, "value": 100.0}
    assert power in line["readings"]
    energy = next(each for each in line["readings"] if each["name"] == "cpu_energy_joules")
    assert (energy["total"], energy["per_second"], energy["absent_because"]) == (None, None, NO_ENERGY_COUNTED)
    assert line["sources"]["powercap"]["present"]
    assert not line["sources"]["cpu_frequency"]["present"]
    assert line["sources"]["cpu_frequency"]["absent_because"]
    assert {"thermal", "cpu_frequency"} <= {each["source"] for each in line["absent"]}


def test_once_is_a_table_without_bars(root: str) -> None:
    done = fairlap("--once", "--interval", "0.2", "--root", root, COLUMNS="80")
    assert done.returncode == 0
    assert "1,980 MHz" in done.stdout
    assert "█" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def in_a_terminal(*arguments: str, signal_after_s: float | None = None, **variables: str) -> tuple[str, int]:
    parent, child = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "fairlap", "watch", *arguments],
        stdout=child,
        stderr=child,
        env=environment(TERM="xterm", COLUMNS="80", LINES="50", **variables),
    )
    os.close(child)
    written = b""
    try:
        while chunk := os.read(parent, 65536):
            written += chunk
            if signal_after_s is not None and "█".encode() in written:
                time.sleep(signal_after_s)
                running.send_signal(signal.SIGINT)
                signal_after_s = None
    except OSError:  # on Linux, the other side is closed
        pass
    os.close(parent)
    return written.decode(), running.wait(timeout=60)


def test_a_terminal_gets_a_picture_and_is_restored(root: str) -> None:
    written, status = in_a_terminal("--seconds", "0.6", "--interval", "0.2", "--root", root)
    assert status == 0
    assert written.index("\x1b[?1049h") < written.index("\x1b[?1049l")
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
    last = written[written.rindex("\x1b[?1049l") :]
    assert "1,980 MHz" in last
    assert "█" in last
    assert "\x1b[36m" in last


def test_no_color_is_honoured(root: str) -> None:
    written, _ = in_a_terminal("--seconds", "0.2", "--interval", "0.2", "--root", root, NO_COLOR="1")
    assert "\x1b[36m" not in written
    assert "1,980 MHz" in written


def test_ctrl_c_in_a_terminal_leaves_the_last_picture_and_status_130(root: str) -> None:
    written, status = in_a_terminal("--interval", "0.2", "--root", root, signal_after_s=0.3)
    assert status == 130
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
    assert "1,980 MHz" in written[written.rindex("\x1b[?1049l") :]
    assert "Traceback" not in written


@pytest.mark.slow_but("15")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(root: str, number: signal.Signals) -> None:
    running = started("--interval", "0.1", "--root", root)
    assert running.stdout is not None
    assert "GPU 0" in running.stdout.readline()
    running.send_signal(number)
    _, printed = running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert "Traceback" not in printed


def test_an_output_that_cannot_be_written_is_an_error_of_one_line(root: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fairlap", "watch", "--once", "--interval", "0.2", "--root", root],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env=environment(),
        )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.endswith("[E_FILE]")


def test_serving_prints_its_address_and_answers_there(root: str) -> None:
    running = started("--serve", "0", "--interval", "0.2", "--root", root)
    assert running.stderr is not None
    announced = next(line for line in running.stderr if "http://" in line)
    url = announced.split(" at ")[1].split(";")[0]
    assert url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert 'fairlap_gpu_power_watts{device="0",source="nvml"} 100.0' in answer.read().decode()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--serve", "rubbish"), ["'rubbish'"]),
        (("--serve", "1.2.3.4.5:80"), ["1.2.3.4.5:80"]),
        (("--seconds", "-1"), ["--seconds"]),
        (("--serve", "0", "--json"), ["--serve", "--json"]),
        (("--once", "--seconds", "2"), ["--once", "--seconds"]),
        (("--interval", "0"), ["--interval"]),
        (("--interval", "nan"), ["--interval", "nan"]),
        (("--dashboard", "--serve", "9555"), ["--dashboard", "--serve"]),
        (("--dashboard", "--interval", "2"), ["--dashboard", "--interval"]),
    ],
)
def test_an_invalid_request_names_the_option_and_exits_with_2(
    root: str, arguments: tuple[str, ...], words: list[str]
) -> None:
    done = here("watch", *arguments, "--root", root)
    assert done.returncode == 2
    assert error_code(done)
    assert all(word in done.stderr for word in words)


def test_a_missing_extra_is_named_with_its_command(root: str, tmp_path: Path) -> None:
    (tmp_path / "prometheus_client.py").write_text("raise ImportError('there is none')\n")
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = fairlap("--serve", "0", "--root", root, PYTHONPATH=path)
    assert done.returncode == 2
    assert error_code(done) == "E_NOT_AVAILABLE"
    assert "fairlap[watch]" in done.stderr


def test_the_dashboard_needs_neither_the_extra_nor_a_sensor(tmp_path: Path) -> None:
    (tmp_path / "prometheus_client.py").write_text("raise ImportError('there is none')\n")
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = fairlap("--dashboard", PYTHONPATH=path)
    assert json.loads(done.stdout)["title"] == "fairlap"
