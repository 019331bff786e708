"""Which client asks a server: by HTTP, by gRPC, or a function of the user's that asks itself."""

from __future__ import annotations

import ssl

from fairlap.frameworks.adapter_parts.grpc.channel import grpc_module
from fairlap.frameworks.adapter_parts.grpc.messages import messages
from fairlap.scenarios.streams.clients.client import Certificates, Client, StreamClient, httpx_module
from fairlap.scenarios.streams.clients.function_client import FunctionClient
from fairlap.scenarios.streams.clients.grpc_client import GrpcStreamClient
from fairlap.scenarios.streams.servers import StreamServer


def client_for(server: StreamServer, certificates: ssl.SSLContext, tokens: int) -> Client:
    if server.function is not None:
        return FunctionClient(server, tokens)
    if server.is_by_grpc:
        return GrpcStreamClient(server, certificates, tokens)
    return StreamClient(server, certificates, tokens)


def require_client(server: StreamServer) -> None:
    """Raise NotAvailable where what speaks its protocol is not installed."""
    if server.is_by_grpc:
        grpc_module()
        messages()
    elif server.function is None:
        httpx_module()


def connected(
    clients: list[Client], connections: int, server: StreamServer, certificates: Certificates, tokens: int
) -> list[Client]:
    """Open as many as are missing before a load, so that no answer waits for that."""
    if len(clients) < connections:
        context = certificates.context()
        clients += [client_for(server, context, tokens) for _ in range(connections - len(clients))]
    found = clients[:connections]
    all(client.connect() for client in found)  # up to the first that cannot
    return found
