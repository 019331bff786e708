from __future__ import annotations

from fairlap.frameworks.contract import Contestant
from fairlap.worker.phases import Phases
from fairlap.worker.protocol import Ended
from fairlap.worker.service import Service


def test_a_rank_takes_leave_before_its_last_message() -> None:
    """Open MPI ends all ranks when one of them ends without it, and JAX aborts those that come last."""
    left: list[bool] = []
    service = Service(Phases(lambda *_: None))
    service._contestant = Contestant(
        bind=lambda _: lambda: None,
        done=None,
        outputs=lambda _: {},
        weights=dict,
        in_force={},
        leave=lambda: left.append(True),
    )
    assert isinstance(service.quit(), Ended)
    assert left == [True]
