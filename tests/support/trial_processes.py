"""The processes that try kernels of roofs apart: each has its own fake of the driver, in which a test plants things."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from fairlap.machine.hardware import device_roofs

_PLANTED = """#!{python}
import ctypes, os, runpy, signal, sys, time
cuda = ctypes.CDLL(os.environ["FAIRLAP_LIBCUDA"])
sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)
del sys.argv[:2]
with open({log!r}, "a") as log:
    print(*sys.argv[2:], file=log)
for attribute, value in ((75, {capability} // 10), (76, {capability} % 10)):
    cuda.fake_cuda_set_device_attribute(0, attribute, value)
exec({plants!r}.get(sys.argv[-1], ""))
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@contextmanager
def trial_processes(capability: int = 90, plants: Mapping[str, str] | None = None) -> Iterator[Path]:
    """Plant code by number type in processes on such a device; give the file with the options of each that started."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        python, log = Path(folder) / "python", Path(folder) / "log"
        log.touch()
        values = {"log": str(log), "capability": capability, "plants": dict(plants or {})}
        python.write_text(_PLANTED.format(python=sys.executable, **values))
        python.chmod(0o755)
        patch.setattr(sys, "executable", str(python))
        yield log


@contextmanager
def unproven(*names: str) -> Iterator[None]:
    """Let kernels for these types, and for no others, be ones that no device has run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_roofs, "is_unproven", lambda name, _: name in names)
        yield
