"""The views as a FastAPI application, and errors as answers of one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import Response

from fairlap.browse.guard import Guard, refusal
from fairlap.browse.views import VIEWS, Asked, View
from fairlap.errors import FairlapError, InvalidRequest, NotAvailable
from fairlap.store.errors import NoSuchRun, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlap.machine.serving.connections import Connections
    from fairlap.machine.serving.guard import Door

_STATUS: dict[type[FairlapError], int] = {
    NoSuchRun: 404,
    InvalidRequest: 400,
    NotAvailable: 501,
    StoreError: 503,
    FairlapError: 500,
}
"""The first that fits."""


def application(names: Collection[str] = (), door: Door | None = None, connections: Connections | None = None) -> Guard:
    inside = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for path, view in VIEWS.items():
        inside.add_api_route(path, _endpoint(view), methods=["GET", "HEAD"], response_model=None)
    inside.add_exception_handler(404, _no_such_page)
    inside.add_exception_handler(FairlapError, _failed)
    return Guard(inside, names, door, connections)


def _endpoint(view: View) -> Callable[[Request], Response]:
    """Answer in a thread, so that a large run does not keep other pages waiting."""

    def answer(request: Request) -> Response:
        content = view.content(_asked(request, view))
        headers = {"content-security-policy": content.policy}
        if content.file:
            headers["content-disposition"] = f'attachment; filename="{content.file}"'
        return Response(content.body, media_type=content.kind, headers=headers)

    return answer


def _asked(request: Request, view: View) -> Asked:
    values: dict[str, list[str]] = defaultdict(list)
    for name, value in request.query_params.multi_items():
        if name not in view.parameters:
            known = ", ".join(view.parameters) or "none"
            raise InvalidRequest(f"unknown parameter {name!r}; this page has: {known}")
        values[name].append(value)
    return Asked(request.path_params.get("run", ""), values)


async def _no_such_page(request: Request, _: Exception) -> Response:
    return refusal(request.url.path, 404, "E_REQUEST", f"there is no page {request.url.path!r}; the list of runs is /")


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, FairlapError)
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    return refusal(request.url.path, status, error.code, str(error))
