"""A connection by gRPC to one server. Neither a proxy nor another address is used, and nothing is sent a second time.

Its certificate is verified as by HTTP, in Python, and gRPC then trusts this one alone: one reader of certificates
decides, and names what is wrong with them.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
from types import ModuleType
from typing import Any

from fairlap.frameworks.adapter_parts.grpc.messages import not_installed
from fairlap.request.fields.server_address import ServerAddress

_IS_ADDRESS = re.compile(r"[0-9.]+|.*:.*")
_STATE_WITHIN_S = 1.0


def grpc_module() -> ModuleType:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its library writes to the terminal of this process
    try:
        import grpc
        import grpc.experimental
    except ImportError as error:
        raise not_installed(error) from None
    module: ModuleType = grpc
    return module


def open_channel(address: ServerAddress, certificates: ssl.SSLContext | None, within_s: float, most_bytes: int) -> Any:
    """Connect by TLS where the address has it. Raises OSError, of which ssl.SSLError is one."""
    grpc = grpc_module()
    options: list[tuple[str, Any]] = [
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.use_local_subchannel_pool", 1),  # or channels to one server share a connection
        ("grpc.max_receive_message_length", most_bytes),
        ("grpc.max_send_message_length", -1),
        # Answers are read by the thread that waits for them, without another one between.
        (grpc.experimental.ChannelOptions.SingleThreadedUnaryStream, 1),
    ]
    named = ("grpc.default_authority", address.text)
    if certificates is None:
        options.append(named)
        return grpc.insecure_channel(_target(address.hosts[0], address.port), options)
    host, certificate = _certificate(address, certificates, within_s)
    if certificates.verify_mode == ssl.CERT_NONE and (name := _name_in(certificate, address, within_s)):
        named = ("grpc.ssl_target_name_override", name)
    options.append(named)
    return grpc.secure_channel(_target(host, address.port), grpc.ssl_channel_credentials(certificate.encode()), options)


def is_connected(grpc: Any, channel: Any) -> bool:
    """Whether the connection is up, as after a refusal of the server's own, rather than lost or never made."""
    seen: list[Any] = []
    reported = threading.Event()

    def report(state: Any) -> None:
        seen.append(state)
        reported.set()

    channel.subscribe(report)
    reported.wait(_STATE_WITHIN_S)
    channel.unsubscribe(report)
    return bool(seen) and seen[0] is grpc.ChannelConnectivity.READY


def _target(host: str, port: int) -> str:
    if not _IS_ADDRESS.fullmatch(host):
        return f"dns:///{host}:{port}"
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"


def _certificate(address: ServerAddress, context: ssl.SSLContext, within_s: float) -> tuple[str, str]:
    """Return which host answered, and the certificate that it showed, once the context is content with it."""
    context.set_alpn_protocols(["h2"])
    errors: list[OSError] = []
    for host in address.hosts:
        try:
            with _handshake(address, host, context, within_s) as shown:
                return host, ssl.DER_cert_to_PEM_cert(shown.getpeercert(binary_form=True) or b"")
        except ssl.SSLError:
            raise
        except OSError as error:
            errors.append(error)
    raise errors[0]


def _name_in(certificate: str, address: ServerAddress, within_s: float) -> str:
    """Find a name that a certificate is for, since gRPC compares one in any case. Empty where that fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=certificate)
    context.set_alpn_protocols(["h2"])
    with _handshake(address, address.hosts[0], context, within_s) as connection:
        found: Any = connection.getpeercert() or {}
    alternatives = [str(name) for _kind, name in found.get("subjectAltName", ())]
    subject = [str(name) for part in found.get("subject", ()) for kind, name in part if kind == "commonName"]
    return next(iter([*alternatives, *subject]), "").replace("*", "any")


def _handshake(address: ServerAddress, host: str, context: ssl.SSLContext, within_s: float) -> ssl.SSLSocket:
    plain = socket.create_connection((host, address.port), timeout=within_s)
    try:
        return context.wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise
