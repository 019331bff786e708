"""gymnax in JAX: its environments' physics and observations, under ``vmap``, in a scan over the steps.

Its own ``step`` draws a start with every step, which only an episode that has ended uses. Here episodes start over
where they started, as those of all contestants do.
"""

from __future__ import annotations

from typing import ClassVar

from fairlap.frameworks.contract import Contestant, Phase, Settings
from fairlap.frameworks.libraries.jax import Jax
from fairlap.models.workload import Workload


class Gymnax(Jax):
    name = "gymnax"
    packages = ("gymnax==1.0.1", "jax==0.10.2")
    packages_on: ClassVar = {}
    module = "gymnax"
    implementation = "gymnax"
    devices = ("cpu",)
    modes = ("simulate",)
    precisions = ("fp64", "fp32")
    no_precision: ClassVar = {}
    generates = False
    rank_launcher = ""

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        from importlib.metadata import version

        found = super().prepare(work, wanted, phase)
        self._version = version("gymnax")
        return found
