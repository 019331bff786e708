"""A server that already runs, ``http://127.0.0.1:8000/v2/models/x`` or ``grpc://127.0.0.1:8001:model=x``.

Nothing is known of it but its metadata and its answers, which alone prove that it does the same work.
"""

from __future__ import annotations

from typing import ClassVar

from fairlap.frameworks.contract import (
    UNKNOWN,
    Contestant,
    Framework,
    Phase,
    Settings,
    Unsupported,
    refuse_what_is_unknown,
)
from fairlap.models.workload import Workload
from fairlap.request.names import HTTP, URL
from fairlap.request.work import Precision


class HttpServer(Framework):
    name = HTTP
    packages = ()
    module = "http.client"
    has_own_model = True
    options: ClassVar = {URL: (), "tensors": ("binary", "json"), "timeout": (), "model": ()}
    # What it computes in is not known; its answers are held to the tolerance of the precision that is raced.
    precisions: ClassVar[tuple[Precision, ...]] = ("fp32", "fp16", "bf16", "int8")

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        if not work.spec.computes:
            raise Unsupported(f"{work.spec.name} has no answers by which a server could be recognised")
        with phase("import"):
            from fairlap.frameworks.adapter_parts.http.client import HttpClient
            from fairlap.frameworks.adapter_parts.http.http_options import http_options_in
            from fairlap.request.fields.server_address import UNENCRYPTED, server_address

            address = server_address(wanted.options.get(URL, ""), schemes=UNENCRYPTED)
        with phase("connect"):
            client = HttpClient(address, http_options_in(wanted.options), work.spec, work.batch)
        self._version = client.protocol.server
        known = "names, shapes and types from its metadata" if client.has_metadata else "none, it has no metadata"
        return Contestant(
            bind=client.bind,
            done=None,
            outputs=client.outputs,
            weights=dict,
            in_force={
                "threads": f"{UNKNOWN}, the server's own",
                "precision": f"{UNKNOWN}, the server's own",
                "weights": "in the server; the answers alone prove that they are the same",
                **client.in_force,
                "checked_before": known,
            },
            work_in="other_server",
        )
