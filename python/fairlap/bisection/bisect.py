"""``fairlap.bisect``: the search from Python, with the arguments of the command. Importing it loads nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlap.bisection.bisection import Bisection


def bisect(
    good: str,
    bad: str,
    *,
    model: str = "",
    on: str = "",
    call: str = "",
    command: str = "",
    releases: str | Path | Sequence[str | Path] = (),
    sure: str | float = 0.99,
    **options: Any,
) -> Bisection:
    """Find the commit, or the release, between a good and a bad one that made it slower.

    Give what races: a ``model`` ``on`` a framework, ``call="package.module:function"``, or a ``command``; or a
    ``suite`` of asv or pytest-benchmark, and ``only``, the name of one of its benchmarks. With ``releases``, the name
    of a package, or wheels, a folder or a pattern of them, ``good`` and ``bad`` are versions; else they are commits of
    the ``repository``, by default that of the current folder. The outcome, the commit or version and the ratio across
    its step are fields of the result, and an interrupted search goes on when it is called again.

    Options: ``quantity``, which is "wall", "cpu_time", "memory_peak", "time_to_first" or "compile_time"; ``prepare``,
    a shell command that builds each commit; of a model ``batch``, ``mode``, ``precision``, ``shapes``, ``dims`` and
    ``trust``; ``inputs``, ``reference``, ``reported`` and ``same_output`` as in ``fairlap.judge``; ``races``,
    ``budget`` such as ``"10m"``, ``blocks``, ``seconds``, ``threads``, ``pass_env`` and ``wait``.
    """
    import msgspec

    from fairlap.bisection.bisect_request import E_BISECT, BisectRequest, RacedModel
    from fairlap.bisection.searching import searched
    from fairlap.judgement.judge_request import Benchmark
    from fairlap.request.python_options import texts_in, with_texts_for_paths
    from fairlap.request.toml_file import from_python
    from fairlap.request.units import Share

    def taken(kind: type[msgspec.Struct]) -> dict[str, Any]:
        return {name: options.pop(name) for name in kind.__struct_fields__ if name in options}

    given = {
        "good": good,
        "bad": bad,
        "releases": texts_in("releases", releases),
        "benchmark": {**taken(Benchmark), "call": call, "command": command},
        "model": {**taken(RacedModel), "model": model, "on": on},
        "sure": float(Share(sure)),
        **with_texts_for_paths(options),
    }
    return searched(from_python(given, BisectRequest, E_BISECT))
