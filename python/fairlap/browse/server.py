"""The application on a port, until a signal ends it."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import secrets
import socket
import sys
import threading

import uvicorn

from fairlap.browse.application import application
from fairlap.browse.guard import Door
from fairlap.errors import InvalidRequest, NotAvailable
from fairlap.interrupts import interrupted_once, status_of

TOKEN = "FAIRLAP_SERVE_TOKEN"
_TOKEN_FORM = re.compile(r"[A-Za-z0-9._~-]{16,256}")
_ENDS_WITHIN_S = 1.0


class BrowsingServer:
    """Listens from construction on."""

    def __init__(self, host: str, port: int) -> None:
        given = _given_token()
        self._socket = _listening(host, port)
        address, port = self._socket.getsockname()[:2]
        bound = ipaddress.ip_address(address.partition("%")[0])
        drawn = "" if given or bound.is_loopback else secrets.token_urlsafe(32)
        door = Door(given or drawn, port) if given or drawn else None
        url = f"http://{_joined(socket.gethostname() if bound.is_unspecified else host, port)}/"
        self.notes = [f"browse stored runs at {url}{f'?token={drawn}' if drawn else ''}; press Ctrl-C to stop"]
        if given:
            self.notes.append(f"it asks for the token in {TOKEN}: open {url}?token=TOKEN once")
        if not bound.is_loopback:
            self.notes.append("the connection is not encrypted; on a network you do not trust, use `ssh -L` instead")
        config = uvicorn.Config(
            application([host], door),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,  # an address may hold the token
            server_header=False,
            timeout_graceful_shutdown=0,
        )
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


def _given_token() -> str:
    token = os.environ.get(TOKEN, "")
    if token and not _TOKEN_FORM.fullmatch(token):
        raise InvalidRequest(
            f"{TOKEN} must have 16 to 256 letters, digits, or characters of '-._~'", code="E_SERVE_TOKEN"
        )
    return token


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
        except BaseException:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotAvailable(f"cannot serve on {_joined(host, port)}: {reason}; give another --host or --port") from None
    return listening


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
