"""A Ray cluster: one that runs already, or one that is started on this machine for as long as it is used."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import secrets
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fairlap.errors import FairlapError, InvalidRequest, NotAvailable, shortened
from fairlap.launch.cluster.called_program import ProgramLost, ProgramOnNode
from fairlap.launch.cluster.cluster import Ended, Node
from fairlap.launch.cluster.local_ray import NotStarted, local_ray

_REACHED_WITHIN_S = 3.0
_CONNECTED_WITHIN_S = 30.0  # Ray starts a process for each client
_STARTED_WITHIN_S = 60.0
_FETCHED_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.1
_ENDED_WITHIN_S = 25.0  # the processes of a block that is interrupted
_CLIENT = "ray://"
_NO_MODULE = "No module named 'fairlap"


class ClusterError(FairlapError):
    """The cluster does not answer, or its connection broke."""

    code = "E_CLUSTER"


def address_of(name: str) -> tuple[str, int] | None:
    """Host and port; None of ``local`` and ``auto``. What names no cluster is refused without a look at the network."""
    if name in ("local", "auto"):
        return None
    if not name.startswith(_CLIENT):
        raise InvalidRequest(f"a cluster is local, auto or ray://HOST:PORT (got {name})", code="E_CLUSTER")
    try:
        parts = urlsplit(name)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise InvalidRequest(f"{name} is not a valid address; it has the form ray://HOST:10001", code="E_CLUSTER")
    return host, port


def cluster_named(name: str, functions: NodeFunctions | None = None) -> RayCluster:
    """Connect to ``local``, ``auto`` or ``ray://HOST:PORT``. Without functions, only programs run on its nodes.

    Until it is closed, nothing can be printed to standard output, where Ray writes about nodes that are lost.
    """
    address = address_of(name)
    if address is not None:
        _require_reachable(name, address)
    undo = contextlib.ExitStack()
    try:
        undo.enter_context(_variables(name))
        undo.enter_context(contextlib.redirect_stdout(io.StringIO()))
        # A connection fails with a message of ours; Ray's own thread may warn of it later.
        warnings.filterwarnings("ignore", module=r"ray\.")
        import ray  # reads the variables

        if name.startswith(_CLIENT):
            import grpc  # noqa: F401
        if name != "local":
            return _connected(ray, name, _CONNECTED_WITHIN_S, undo, functions)
        return _connected(ray, undo.enter_context(local_ray(_STARTED_WITHIN_S)), _STARTED_WITHIN_S, undo, functions)
    except NotStarted as error:
        undo.close()
        raise ClusterError(f"cannot start Ray on this machine: {error}") from None
    except ImportError as error:
        undo.close()
        raise NotAvailable(f"a cluster needs ray ({error}); pip install 'fairlap[sweep]'") from None
    except BaseException:
        undo.close()
        raise


@dataclass(frozen=True)
class NodeFunctions:
    """What ``ask`` and ``start`` call on a node."""

    describe: Callable[[], bytes]
    run: Callable[[bytes], bytes]


def _remote(ray: Any, functions: NodeFunctions) -> NodeFunctions:
    return NodeFunctions(*(ray.remote(max_retries=0)(each) for each in (functions.describe, functions.run)))


class RayCluster:
    """A ``Cluster``. A block takes all processors and GPUs of its node, so that Ray runs nothing else there."""

    def __init__(self, ray: Any, end: Callable[[], object], functions: NodeFunctions | None) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray, self._end, self._affinity = ray, end, NodeAffinitySchedulingStrategy
        self._functions = None if functions is None else _remote(ray, functions)
        self._tickets: dict[Any, int] = {}
        self._last = 0
        self._resources: dict[str, dict[str, float]] = {}

    def nodes(self) -> Sequence[Node]:
        """List the nodes; one without processors, as the head of a cluster often is, only coordinates."""
        with _connection():
            found = [each for each in self._ray.nodes() if each["Alive"] and each["Resources"].get("CPU", 0) >= 1]
        self._resources = {each["NodeID"]: each["Resources"] for each in found}
        return [Node(each["NodeID"], each["NodeManagerHostname"]) for each in found]

    def ask(self, node: Node) -> int:
        assert self._functions is not None
        return self._submit(self._functions.describe, node, {"num_cpus": 0})

    def start(self, node: Node, task: bytes) -> int:
        assert self._functions is not None
        return self._submit(self._functions.run, node, self._all_of(node), task)

    def _all_of(self, node: Node) -> dict[str, float]:
        has = self._resources[node.id]
        return {"num_cpus": has["CPU"], "num_gpus": has.get("GPU", 0)}

    def program(self, node: Node, module: str) -> RayProgram:
        """Start a program of fairlap's on a node, which it has for itself. Whether it could shows when it is called."""
        made = self._ray.remote(max_restarts=0, max_task_retries=0)(ProgramOnNode)
        where = self._affinity(node.id, soft=False)
        with _connection():
            return RayProgram(self._ray, made.options(scheduling_strategy=where, **self._all_of(node)).remote(module))

    def ended(self, within_s: float) -> Sequence[Ended]:
        if not self._tickets:
            time.sleep(within_s)
            return []
        deadline_s = time.monotonic() + within_s
        while True:
            with _connection():
                done, _ = self._ray.wait(list(self._tickets), timeout=0)
            if done or time.monotonic() >= deadline_s:
                break
            time.sleep(_LOOK_EVERY_S)  # here, where a signal keeps its name; Ray would make another interrupt of it
        return [self._ended(ref) for ref in done]

    def close(self) -> None:
        """Blocks that run are interrupted, and end their contestants."""
        try:
            with contextlib.suppress(Exception):
                for ref in self._tickets:
                    self._ray.cancel(ref)
                if self._tickets:
                    self._ray.wait(list(self._tickets), num_returns=len(self._tickets), timeout=_ENDED_WITHIN_S)
        finally:
            self._end()

    def _submit(self, function: Any, node: Node, needs: dict[str, float], *arguments: bytes) -> int:
        self._last += 1
        with _connection():
            ref = function.options(scheduling_strategy=self._affinity(node.id, soft=False), **needs).remote(*arguments)
        self._tickets[ref] = self._last
        return self._last

    def _ended(self, ref: Any) -> Ended:
        ticket = self._tickets.pop(ref)
        try:
            return Ended(ticket, answer=self._ray.get(ref, timeout=_FETCHED_WITHIN_S))
        except self._ray.exceptions.RayTaskError as error:
            return Ended(ticket, lost=_reason(error))
        except (self._ray.exceptions.WorkerCrashedError, self._ray.exceptions.TaskCancelledError):
            return Ended(ticket, lost="its process on the node was ended")
        except self._ray.exceptions.GetTimeoutError:
            return Ended(ticket, lost="its result could not be fetched")
        except self._ray.exceptions.RayError:
            return Ended(ticket, lost="the node is gone")


class RayProgram:
    """A ``CalledProgram`` on a node."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor

    def call(self, message: bytes, within_s: float) -> bytes:
        """Run in a thread: Ray would take the handling of signals for itself."""
        try:
            answer: bytes = self._ray.get(self._actor.call.remote(message), timeout=within_s)
        except self._ray.exceptions.RayTaskError as error:
            raise ProgramLost(_reason(error)) from None
        except self._ray.exceptions.GetTimeoutError:
            raise ProgramLost(f"it did not answer within {within_s:g} seconds") from None
        except self._ray.exceptions.RayActorError as error:
            raise ProgramLost(_why_actor_died(error)) from None
        except (self._ray.exceptions.RayError, ConnectionError, RuntimeError) as error:
            raise ProgramLost(f"the cluster lost it: {shortened(str(error))}") from None
        return answer

    def close(self) -> None:
        """Its process ends when the one in the cluster does."""
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)


def _why_actor_died(error: Any) -> str:
    if _NO_MODULE in str(error):
        return "fairlap, or this version of it, is not installed there"
    return "its process on the node was ended, or the node is gone"


def _reason(error: Any) -> str:
    text = str(error)
    if _NO_MODULE in text:
        return "fairlap, or this version of it, is not installed there"
    lines = text.strip().splitlines()
    return shortened(str(getattr(error, "cause", "") or (lines[-1] if lines else "it failed")))


@contextlib.contextmanager
def _connection() -> Iterator[None]:
    try:
        yield
    except (ConnectionError, RuntimeError) as error:  # Ray's client raises either
        raise ClusterError(f"the connection to the cluster broke: {shortened(str(error))}") from None


@contextlib.contextmanager
def _variables(name: str) -> Iterator[None]:
    """Only with a token that no file holds can others on the network reach the cluster of this machine."""
    changed = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    if name == "local":
        changed |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        changed |= {"RAY_ADDRESS": "", "RAY_worker_niceness": "0"}
    before = {variable: os.environ[variable] for variable in changed if variable in os.environ}
    os.environ |= changed
    try:
        yield
    finally:
        for variable in changed:
            del os.environ[variable]
        os.environ |= before


def _connected(
    ray: Any, address: str, within_s: float, undo: contextlib.ExitStack, functions: NodeFunctions | None
) -> RayCluster:
    """In a thread: Ray would otherwise wait for minutes, and take the handlers of signals for itself."""
    failed: list[BaseException] = []
    is_up = threading.Event()

    def connect() -> None:
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL)
        except BaseException as error:
            failed.append(error)
        is_up.set()

    thread = threading.Thread(target=connect, daemon=True)
    undo.callback(ray.shutdown)
    with _silence():
        thread.start()
        try:
            is_up.wait(within_s)
        except KeyboardInterrupt:
            is_up.wait(within_s)  # what is half started could not be ended
            raise
    if not is_up.is_set():
        raise ClusterError(f"the cluster {address} did not answer within {within_s:g} seconds")
    if failed:
        raise ClusterError(f"cannot connect to the cluster {address}: {shortened(str(failed[0]))}")
    return RayCluster(ray, undo.close, functions)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Ray writes to standard error what becomes one line of ours."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _require_reachable(name: str, address: tuple[str, int]) -> None:
    """Ray itself would try for half a minute."""
    try:
        socket.create_connection(address, timeout=_REACHED_WITHIN_S).close()
    except OSError as error:
        raise ClusterError(f"nothing answers at {name}: {error.strerror or error}") from None
