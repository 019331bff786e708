from __future__ import annotations

from types import SimpleNamespace

from fairlap.frameworks.contract import Contestant
from fairlap.meters.memory import Memory
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Ended
from fairlap.worker.service import Service


def test_a_rank_takes_leave_before_its_last_message() -> None:
    """Open MPI ends all ranks when one of them ends without it, and JAX aborts those that come last."""
    left: list[bool] = []
    service = Service(Phases(lambda *_: None))
    contestant = Contestant(
        bind=lambda _: lambda: None,
        done=None,
        outputs=lambda _: {},
        weights=dict,
        in_force={},
        leave=lambda: left.append(True),
    )
    held = SimpleNamespace(contestant=contestant, fed=None, memory_before_second=Memory())
    service._held = held  # type: ignore[assignment]
    assert isinstance(service.quit(), Ended)
    assert left == [True]
