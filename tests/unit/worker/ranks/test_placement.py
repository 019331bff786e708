from __future__ import annotations

import socket

import pytest
from fairlap.worker.ranks.launchers import script
from fairlap.worker.ranks.placement import draw_addresses, places_of


@pytest.mark.parametrize(
    ("ranks", "hosts", "placed"),
    [
        (2, (), [("", 0, 2)]),
        (4, ("a", "b"), [("a", 0, 2), ("b", 2, 2)]),
        (3, ("a", "b"), [("a", 0, 2), ("b", 2, 1)]),
        (1, ("a", "b"), [("a", 0, 1)]),
        (2, ("localhost", "b"), [("", 0, 1), ("b", 1, 1)]),
        (2, (socket.gethostname(),), [("", 0, 2)]),
    ],
)
def test_ranks_are_dealt_out_and_numbered_host_by_host(
    ranks: int, hosts: tuple[str, ...], placed: list[tuple[str, int, int]]
) -> None:
    assert [(place.host, place.first, place.ranks) for place in places_of(ranks, hosts)] == placed


def test_every_rank_has_an_address_of_its_own() -> None:
    addresses = draw_addresses(places_of(8, ()))
    assert len(set(addresses.by_rank)) == 8
    assert addresses.coordinator == addresses.by_rank[0]
    assert all(each.startswith("127.0.0.1:") for each in addresses.by_rank)


def test_a_remote_script_carries_variables_and_no_home() -> None:
    variables = {"OMP_NUM_THREADS": "1", "HOME": "/root", "SSH_AUTH_SOCK": "/s", "QUOTED": "a 'b' $c\n"}
    text = script(["/bin/program", "--option"], variables, ["/a file"]).decode()
    assert "export OMP_NUM_THREADS=1\n" in text
    assert "HOME" not in text
    assert "SSH_AUTH_SOCK" not in text
    assert "'/a file'" in text
