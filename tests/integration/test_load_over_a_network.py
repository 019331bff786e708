"""A load whose clients are on two hosts of a network and whose server is on a third: delays and clocks are as planted.

One client is behind a wire that holds each frame back, and its clock is ahead.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from machine_marks import needs_package
from network_hosts import (
    ANOTHER,
    HERE,
    HOSTS,
    Wire,
    cut,
    name_on,
    network_hosts,
    processes_on,
    why_no_hosts,
    why_no_wires_and_clocks,
)
from processes_seen import content, wait_until_empty
from ray_nodes import RayNodes, ray_of_tests
from stream_races import file_of_prompts
from stream_server import StreamingServer, in_a_process

pytestmark = [
    pytest.mark.skipif(bool(why_no_hosts()), reason=why_no_hosts()),
    pytest.mark.skipif(bool(why_no_wires_and_clocks()), reason=why_no_wires_and_clocks()),
    *(pytest.mark.slow, pytest.mark.timeout(900)),
    *(needs_package("ray"), needs_package("httpx")),
]

REQUESTS, RATE_PER_S, FIRST_MS = 120, 40, 30.0
SENT_LATE_S, RECEIVED_LATE_S, AHEAD_S = 0.004, 0.008, 5000
NEAR, FAR = HOSTS
PROGRAM = b"fairlap.scenarios.streams.race.client_program"


@dataclass(frozen=True)
class Network:
    shell: Path
    nodes: RayNodes

    @property
    def clients(self) -> str:
        return f"ray://{HERE}:{self.nodes.client_port}"

    def on(self, host: str) -> list[str]:
        return [str(self.shell), host]


@pytest.fixture
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder, wires = tmp_path_factory.mktemp("network"), {FAR: Wire(SENT_LATE_S, RECEIVED_LATE_S)}
    with network_hosts(folder, (*HOSTS, ANOTHER), wires, {FAR: AHEAD_S}) as shell, ray_of_tests() as nodes:
        found = Network(shell, nodes)
        nodes.start("head", head=True, address=HERE)
        for host in HOSTS:
            nodes.start(name_on(host), address=host, on=found.on(host))
        yield found


def load(folder: Path, network: Network, address: str, *options: object) -> subprocess.Popen[str]:
    how = ("--tokens", 6, "--rate", RATE_PER_S, "--trial", f"{REQUESTS / RATE_PER_S:g}s", "--json", "--no-store")
    prompts = file_of_prompts(folder, REQUESTS)
    command = [sys.executable, "-m", "fairlap", "load", str(prompts), "--on", address, "--clients", network.clients]
    return subprocess.Popen(
        [*command, *map(str, (*how, *options))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_known_delays_and_a_known_clock_are_found_and_every_request_is_asked_once(
    network: Network, tmp_path: Path
) -> None:
    with in_a_process(on=network.on(ANOTHER), host=ANOTHER, first_ms=FIRST_MS) as server:
        begun = load(tmp_path, network, server.at(), "--blocks", 1, "--remote")
        output, errors = begun.communicate(timeout=450)
    [turn] = json.loads(output)["processes"]
    assert turn["outcome"] == "finished", errors
    near, far = sorted(turn["streams"]["clients"], key=lambda each: str(each["name"]))
    assert [each["name"] for each in (near, far)] == [name_on(host) for host in HOSTS]
    assert [each["requests"] for each in (near, far)] == [REQUESTS / 2, REQUESTS / 2]
    delays_ns, ahead_ns = 1e9 * (SENT_LATE_S + RECEIVED_LATE_S), 1e9 * AHEAD_S
    for each, own_ns in ((near, 0.0), (far, ahead_ns)):
        assert abs(each["clock_offset_ns"] - own_ns) <= each["clock_uncertainty_ns"]
    assert far["clock_uncertainty_ns"] >= delays_ns / 2  # nothing is assumed of how alike the two ways are
    assert far["first_token_p50_ns"] >= 1e6 * FIRST_MS + delays_ns
    first = turn["streams"]["clients"][0]["name"]
    firsts_ns, late_ns = by_host(turn, server, first)
    assert min(firsts_ns[FAR]) >= 1e6 * FIRST_MS + delays_ns > min(firsts_ns[NEAR]) >= 1e6 * FIRST_MS
    # On the clock of this machine, requests of the far client come later by what they are held back.
    of_clock_ns = near["clock_uncertainty_ns"] + far["clock_uncertainty_ns"]
    assert abs(min(late_ns[FAR]) - min(late_ns[NEAR]) - 1e9 * SENT_LATE_S) <= of_clock_ns + 2e6
    wait_until_empty(lambda: programs_on(NEAR) + programs_on(FAR))


def by_host(
    turn: dict[str, Any], server: StreamingServer, first: str
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the time to each first token, and how long after it was due each request came to the server."""
    stamps, came_ns = turn["streams"]["requests"], {}
    for truth in server.truths[-REQUESTS:]:
        came_ns[truth.prompt.split()[-1]] = truth.came_ns
    assert len(came_ns) == REQUESTS
    order = HOSTS if first == name_on(NEAR) else HOSTS[::-1]
    firsts_ns: dict[str, list[float]] = {host: [] for host in HOSTS}
    late_ns: dict[str, list[float]] = {host: [] for host in HOSTS}
    for place, number in enumerate(stamps["prompts"]):
        host = order[place % len(order)]
        firsts_ns[host].append(stamps["first_ns"][place] - stamps["from_ns"][place])
        late_ns[host].append(came_ns[str(number)] - stamps["from_ns"][place])
    return firsts_ns, late_ns


def test_a_client_whose_cable_is_taken_out_fails_its_turn_and_the_next_has_all_requests(
    network: Network, tmp_path: Path
) -> None:
    with in_a_process(on=network.on(ANOTHER), host=ANOTHER, first_ms=FIRST_MS) as server:
        begun = load(tmp_path, network, server.at(), "--blocks", 2, "--remote")
        deadline_s = time.monotonic() + 400
        while requests_of(server) < 100:  # at most 60 of them are of the examination
            assert begun.poll() is None, begun.communicate()
            assert time.monotonic() < deadline_s
            time.sleep(0.5)
        cut(FAR)
        output, errors = begun.communicate(timeout=450)
    first, second = json.loads(output)["processes"]
    assert (first["outcome"], first["code"], second["outcome"]) == ("failed", "E_CLIENT_LOST", "finished"), errors
    kept, whole = ([each["requests"] for each in turn["streams"]["clients"]] for turn in (first, second))
    assert (kept, whole) == ([REQUESTS / 2], [REQUESTS])
    assert sum("was lost" in line for line in errors.splitlines() if line.startswith("fairlap: ")) == 1, errors


def test_a_server_on_the_loopback_of_this_host_is_not_asked_from_others(network: Network, tmp_path: Path) -> None:
    with StreamingServer() as server:
        begun = load(tmp_path, network, server.at(), "--blocks", 1)
        output, errors = begun.communicate(timeout=450)
        asked = len(server.requests)
    assert json.loads(output)["error"]["code"] == "E_CLIENTS", errors
    assert asked == 0


def requests_of(server: StreamingServer) -> int:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=5.0)
    with suppress(OSError):
        connection.request("GET", "/truth")
        return len(json.loads(connection.getresponse().read()))
    return 0


def programs_on(host: str) -> list[int]:
    return [pid for pid in processes_on(host) if PROGRAM in content(pid, "cmdline")]
