"""The application on a port, until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from fairlap.browse.application import application
from fairlap.interrupts import interrupted_once, status_of
from fairlap.machine.serving.connections import ACCEPTED_AT_ONCE, Connections, silence_event_loop
from fairlap.machine.serving.listening import NOT_ENCRYPTED, TOKEN, Listening

_ENDS_WITHIN_S = 1.0


class BrowsingServer:
    """Listens from construction on."""

    def __init__(self, host: str, port: int) -> None:
        listening = Listening(host, port)
        self._socket = listening.socket
        url, drawn = f"http://{listening.address}/", listening.drawn_token
        self.notes = [f"browse stored runs at {url}{f'?token={drawn}' if drawn else ''}; press Ctrl-C to stop"]
        if listening.asks_for_given_token:
            self.notes.append(f"it asks for the token in {TOKEN}: open {url}?token=TOKEN once")
        if not listening.is_loopback:
            self.notes.append(NOT_ENCRYPTED)
        connections = Connections()
        config = uvicorn.Config(
            application([host], listening.door, connections),
            http=_protocol(connections),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,  # an address may hold the token
            server_header=False,
            timeout_graceful_shutdown=0,
            backlog=ACCEPTED_AT_ONCE,
        )
        silence_event_loop()
        self._server = uvicorn.Server(config)

    def run(self) -> int:
        """Until a signal; the exit status. A page that is being made then is dropped."""
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        serving = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        with interrupted_once():
            try:
                serving.start()
                serving.join()
            except KeyboardInterrupt as interrupt:
                logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it reports what it drops
                self._server.should_exit = self._server.force_exit = True
                serving.join(_ENDS_WITHIN_S)
                return status_of(interrupt)
        return 1


def end(status: int) -> None:
    """Without waiting for threads that still make a page: nothing of them is needed any more."""
    if all(each.daemon or each is threading.main_thread() for each in threading.enumerate()):
        raise SystemExit(status)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _protocol(connections: Connections) -> type[asyncio.Protocol]:
    """Uvicorn's, whose connections are limited from their first moment on: its own limits begin with a request."""

    class Limited(AutoHTTPProtocol):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            self._client = tuple((transport.get_extra_info("peername") or ("",))[:2])
            super().connection_made(transport)
            connections.opened(self._client, transport)

        def connection_lost(self, error: Exception | None) -> None:
            connections.closed(self._client)
            super().connection_lost(error)

    return Limited
