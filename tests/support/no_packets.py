"""A network on which nothing may be sent, for tests of what is refused before."""

from __future__ import annotations

import socket

import pytest


def refuse_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(*_arguments: object, **_more: object) -> None:
        raise AssertionError("something was sent")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, sent)
    monkeypatch.setattr(socket, "getaddrinfo", sent)
