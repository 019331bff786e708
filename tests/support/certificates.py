"""Certificates that no system trusts, made by openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def certificate_of(folder: Path, names: str) -> Path:
    """Make one for names such as ``IP:127.0.0.1``, with its key in the same file, and alone in a file beside (.crt)."""
    path = folder / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    more = ["-subj", "/CN=here", "-addext", f"subjectAltName={names}", "-days", "2"]
    try:
        subprocess.run([*command, *more, "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs openssl, which makes the certificate")
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path
