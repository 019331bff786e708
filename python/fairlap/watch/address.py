"""Where to serve: ``PORT`` or ``HOST:PORT``; only this machine can reach it unless told otherwise."""

from __future__ import annotations

import re

from fairlap.errors import WrongRequest

THIS_MACHINE_ONLY = "127.0.0.1"


def address_in(text: str) -> tuple[str, int]:
    """Host and port. 0 is any port that is free."""
    host, colon, number = text.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if in_brackets else host
    right_host = bool(bare) == bool(colon) and (":" in bare) == in_brackets and not any(sign.isspace() for sign in bare)
    if not right_host or not re.fullmatch(r"[0-9]{1,5}", number) or int(number) > 65535:
        raise WrongRequest(f"{text!r} is no address; give a port such as 9555, or HOST:PORT such as 0.0.0.0:9555")
    return bare or THIS_MACHINE_ONLY, int(number)
