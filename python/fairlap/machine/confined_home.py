"""A home for a confined process, in place of the user's."""

from __future__ import annotations

import os
import site
import tempfile
from collections.abc import Sequence
from pathlib import Path

_FOLDERS_OF_LIBRARIES = (
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "MPLCONFIGDIR"),
    *("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN_PATH", "TRANSFORMERS_CACHE", "HF_MODULES_CACHE"),
    *("TORCH_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "NUMBA_CACHE_DIR"),
)


def moved_home(writable: Sequence[Path]) -> Path:
    """Libraries keep caches, settings and counters in a home, which they expect to be able to write: from now on the
    last of these folders. Of the user's own one file is left, which is returned: Keras computes by its settings."""
    home = str(writable[-1])
    settings = Path(os.environ.get("KERAS_HOME", "~/.keras"), "keras.json").expanduser()
    os.environ["PYTHONUSERBASE"] = site.getuserbase()  # packages of the user
    for name in _FOLDERS_OF_LIBRARIES:
        if not any(Path(os.environ.get(name, "/")).is_relative_to(folder) for folder in writable):
            os.environ.pop(name, None)
    if settings.is_file():
        os.environ["KERAS_HOME"] = str(settings.parent)
    tempfile.tempdir = os.environ["TMPDIR"] = os.environ["HOME"] = home
    return settings
