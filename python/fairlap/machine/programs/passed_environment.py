"""The environment that programs of others are started with: this process's own without its secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

from fairlap.errors import InvalidRequest
from fairlap.secrets import without_secrets

_WORDS = frozenset([
    "KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASS", "PASSPHRASE",
    "CREDENTIAL", "CREDENTIALS", "PAT", "COOKIE", "PWD", "AUTH", "OAUTH", "JWT", "DSN", "WEBHOOK",
    "BEARER", "PRIVATE", "SIGNATURE", "PW", "CRED", "CREDS", "PRIVKEY",
])  # fmt: skip
_ENDS = (  # without a line before them
    *("TOKEN", "TOKENS", "PASSWORD", "PASSWORDS", "PASSWD", "SECRET", "SECRETS", "PASSPHRASE", "OAUTH"),
    *("DBPASS", "SSHPASS", "PGPASS", "DBPW", "CREDS", "CREDENTIALS", "KEYS"),
)
_NO_KEY = re.compile(r"(?:^|_)(?:MONKEY|TURKEY|HOCKEY|DONKEY|WHISKEY|JOCKEY|HOTKEY)$")
_NUMBER = re.compile(r"_?\d+$")  # PASSWORD2 is a password as well
_PRIVATE_KEY = "-----BEGIN "
_PLAIN = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})  # folders, and where a program listens
_OF_CLOUDS = ("AWS_", "AZURE_", "ARM_", "GOOGLE_APPLICATION_", "ACTIONS_")
_OURS = frozenset({"FAIRLAP_STORE", "FAIRLAP_SERVE_TOKEN"})  # the first may be an address with a password
_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/@:]*:[^\s@]+@|https?://[^\s/@]+@", re.IGNORECASE)


def handed_on(environment: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """Drop tokens, keys and passwords, by the variables' names, and addresses with a password.

    Those that are ``passed`` stay.
    """
    return {name: value for name, value in environment.items() if name in passed or not _is_secret(name, value)}


def require_confirmed(of_plan: Collection[str], confirmed: Collection[str]) -> None:
    """Refuse unconfirmed variables of a plan, which another user may have written to get what is secret here."""
    if unconfirmed := [name for name in of_plan if name not in confirmed]:
        options = " ".join(f"--pass-env {name}" for name in unconfirmed)
        raise InvalidRequest(
            f"the plan passes {', '.join(unconfirmed)} to its contestants; add {options} to confirm that",
            code="E_PASS_ENV",
        )


def own_environment(passed: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that this process hands on."""
    return handed_on(os.environ, passed)


def _is_secret(name: str, value: str) -> bool:
    upper = name.upper()
    if upper in _PLAIN:
        return False
    bare = _NUMBER.sub("", upper)
    if upper in _OURS or upper.startswith(_OF_CLOUDS) or bare.endswith(_ENDS) or _WORDS & {*bare.split("_")}:
        return True
    if bare.endswith("KEY") and not _NO_KEY.search(bare):
        return True
    return _PRIVATE_KEY in value or _LOGIN.search(value) is not None or without_secrets(value) != value
