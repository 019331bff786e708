"""The sandbox of a worker, which it enters before it imports anything of the contestant.

It enters it before NumPy too, which starts threads. Those that exist already would keep their files, and a contestant
can make any thread of its process act for it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from fairlap.machine.files.scratch_folder import SHARED_MEMORY
from fairlap.machine.programs.confined_home import moved_home
from fairlap.machine.programs.sandbox import confine, means
from fairlap.worker.protocol import Sandbox


def confined(wanted: Sandbox) -> dict[str, str]:
    """Leave this process what is wanted, and return the setting in force.

    It may start programs, such as a compiler, in the same sandbox. Raises Unsupported where the kernel has no means.
    """
    found = means()
    if not found:
        from fairlap.frameworks.contract import Unsupported

        raise Unsupported("this kernel has neither Landlock nor seccomp, which a sandbox is made with")
    writable = [Path(each) for each in wanted.writable]
    writable.append(Path(tempfile.mkdtemp(prefix="home-", dir=writable[-1])))
    os.environ["FAIRLAP_CACHE"] = wanted.writable[-1]  # the user's is for all races
    readable = [*map(Path, wanted.readable), Path("/sys"), moved_home(writable)]
    confine(readable, [*writable, SHARED_MEMORY], starts="programs", gpu=wanted.gpu)
    from fairlap.worker.process_options import SANDBOX  # here, since it imports NumPy

    return {SANDBOX: found}
