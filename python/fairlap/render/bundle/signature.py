"""Whose a bundle is: an SSH signature over its manifest, made and checked by OpenSSH's ``ssh-keygen``.

The signature is a part of the bundle that the manifest does not list, since it is made of the manifest. Without
fairlap: ``ssh-keygen -Y verify -f ALLOWED -I WHO -n fairlap -s manifest.sshsig < manifest.json``.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from fairlap.errors import InvalidRequest, NotAvailable, shortened

SIGNATURE = "manifest.sshsig"
CODE = "E_SIGNER"
_OURS = ("-n", "fairlap")  # the namespace
_PUBLIC_KEY = re.compile(r"(ssh-|ecdsa-|sk-)\S+ \S+")
_TIMEOUT_S = 120.0  # a key may want a passphrase or a touch
_MOST_SIGNATURE_BYTES = 100_000


class WrongSigner(InvalidRequest):
    """The signature is absent, or of a key that is not allowed."""

    code = CODE


def sign(manifest: bytes, key: Path) -> bytes:
    """Make the armoured signature; a public key takes its private one from the agent."""
    if not key.is_file():
        raise InvalidRequest(f"there is no key {key} to sign with", code=CODE)
    done = _ssh_keygen("sign", *_OURS, "-f", str(key.absolute()), given=manifest)
    if done.returncode or not done.stdout:
        raise InvalidRequest(f"cannot sign with {key}: {_reason(done)}", code=CODE)
    return done.stdout


def fits(manifest: bytes, signature: bytes) -> bool:
    """Whether it is a signature of this manifest, by whatever key."""
    if len(signature) > _MOST_SIGNATURE_BYTES:
        return False
    with tempfile.TemporaryDirectory(prefix="fairlap-signature-") as folder:
        file = Path(folder) / SIGNATURE
        file.write_bytes(signature)
        return _ssh_keygen("check-novalidate", *_OURS, "-s", str(file), given=manifest).returncode == 0


def signer_of(manifest: bytes, signature: bytes, allowed: Path) -> str:
    """Who signed and with which key. ``allowed`` is a file of allowed signers, or a public key; else WrongSigner."""
    try:
        listed = allowed.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InvalidRequest(f"cannot read the allowed signers {allowed}: {reason}", code=CODE) from None
    if _PUBLIC_KEY.match(listed):
        listed = "".join(f"{allowed.name.replace(' ', '_')} {line}\n" for line in listed.splitlines() if line.strip())
    with tempfile.TemporaryDirectory(prefix="fairlap-signature-") as folder:
        file, signers = Path(folder) / SIGNATURE, Path(folder) / "allowed"
        file.write_bytes(signature)
        signers.write_text(listed, "utf-8")
        named = _ssh_keygen("find-principals", "-s", str(file), "-f", str(signers), given=b"")
        for principal in named.stdout.decode("utf-8", "replace").splitlines():
            options = ("-s", str(file), "-f", str(signers), "-I", principal)
            done = _ssh_keygen("verify", *_OURS, *options, given=manifest)
            if done.returncode == 0:
                found = re.search(r"with (\S+) key (\S+)", done.stdout.decode("utf-8", "replace"))
                return f"{principal}, {found[1]} key {found[2]}" if found else principal
    raise WrongSigner(f"the bundle is not signed by a signer of {allowed}: {_reason(named)}")


def _ssh_keygen(action: str, *options: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
    words = ["ssh-keygen", "-Y", action, *options]
    try:
        return subprocess.run(words, input=given, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise NotAvailable(
            "signatures need ssh-keygen, which is not installed; install OpenSSH's client", code="E_SSH_KEYGEN"
        ) from None
    except subprocess.TimeoutExpired:
        raise InvalidRequest(f"ssh-keygen did not answer within {_TIMEOUT_S:.0f} s", code=CODE) from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    return shortened(done.stderr.decode("utf-8", "replace")) or "no key fits"
