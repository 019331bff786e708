"""A load whose clients are on two Ray nodes: exactly the requests of one client, and what is left without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from machine_marks import needs_package
from processes_seen import content, wait_until, wait_until_empty
from ray_nodes import RayNodes, ray_nodes
from stream_races import exact_quantile_ns, file_of_prompts
from stream_server import StreamingServer, in_a_process

pytestmark = [
    *(pytest.mark.slow, pytest.mark.sanitized, pytest.mark.timeout(600)),
    *(needs_package("ray"), needs_package("httpx")),
]

REQUESTS, RATE_PER_S = 120, 40
PROGRAM = b"fairlap.scenarios.streams.race.client_program"


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with ray_nodes() as found:
        yield found


def load(folder: Path, server: StreamingServer, nodes: RayNodes, *options: object) -> subprocess.Popen[str]:
    how = ("--tokens", 6, "--rate", RATE_PER_S, "--trial", f"{REQUESTS / RATE_PER_S:g}s", "--clients", "auto")
    prompts = file_of_prompts(folder, REQUESTS)
    return subprocess.Popen(
        [*(sys.executable, "-m", "fairlap", "load", str(prompts), "--on", server.at()), *map(str, (*how, *options))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RAY_ADDRESS": nodes.address},
    )


def programs_on(nodes: RayNodes, name: str) -> list[int]:
    return [pid for pid in nodes.processes(name) if PROGRAM in content(pid, "cmdline")]


def latencies_ns(turn: dict[str, Any]) -> list[float]:
    stamps = turn["streams"]["requests"]
    return [last - due for due, last in zip(stamps["from_ns"], stamps["last_ns"], strict=True)]


def test_two_machines_send_the_load_of_one_and_all_of_its_times_are_kept(nodes: RayNodes, tmp_path: Path) -> None:
    with in_a_process(first_ms=30.0, each_ms=2.0) as server:
        output, errors = load(tmp_path, server, nodes, "--blocks", 1, "--json", "--no-store").communicate(timeout=300)
    document = json.loads(output)
    [turn], [row] = document["processes"], document["rows"]
    assert turn["outcome"] == "finished", errors
    clients = turn["streams"]["clients"]
    assert [each["requests"] for each in clients] == [REQUESTS / 2, REQUESTS / 2]
    assert len({each["name"] for each in clients}) == 2
    counts, loaded = turn["streams"]["figures"]["counts"], server.truths[-REQUESTS:]
    prompts = Counter(map(str, turn["streams"]["requests"]["prompts"]))
    assert Counter(each.prompt.split()[-1] for each in loaded) == prompts
    assert len({each.prompt for each in loaded}) == REQUESTS == counts["answered"]
    assert sum(len(each.tokens_ns) for each in loaded) == counts["tokens"]
    exact_ns = latencies_ns(turn)
    assert len(exact_ns) == REQUESTS
    for quantile, name in ((0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")):
        wanted_ns = exact_quantile_ns(exact_ns, quantile)
        assert turn["timings"]["wall_ns"][name] == pytest.approx(wanted_ns, abs=1.0)
    assert min(exact_ns) >= 40e6  # what the server takes
    for each in clients:
        assert abs(each["clock_offset_ns"]) <= each["clock_uncertainty_ns"]  # both nodes are this machine
        assert each["floor"]["answered"] == each["floor"]["requests"] >= 20
    assert [each["requests"] for each in row["load_clients"]] == [REQUESTS / 2, REQUESTS / 2]
    wait_until_empty(lambda: [*programs_on(nodes, "first"), *programs_on(nodes, "second")])


def test_a_node_that_is_killed_under_load_takes_only_its_own_requests_with_it(nodes: RayNodes, tmp_path: Path) -> None:
    with StreamingServer(first_ms=30.0, each_ms=2.0) as server:
        begun = load(tmp_path, server, nodes, "--blocks", 2, "--json", "--no-store")
        wait_until(lambda: len(server.truths) >= 100, 120)  # at most 60 of them are of the examination
        nodes.kill_all("second")
        output, errors = begun.communicate(timeout=300)
    first, second = json.loads(output)["processes"]
    assert (first["outcome"], first["code"], second["outcome"]) == ("failed", "E_CLIENT_LOST", "finished")
    assert sum("was lost" in line for line in errors.splitlines() if line.startswith("fairlap: ")) == 1, errors
    kept, whole = ([each["requests"] for each in turn["streams"]["clients"]] for turn in (first, second))
    assert (kept, whole) == ([REQUESTS / 2], [REQUESTS])
    assert first["timings"]["wall_ns"]["samples"] == REQUESTS / 2
    wait_until_empty(lambda: [*programs_on(nodes, "first"), *programs_on(nodes, "second")])
