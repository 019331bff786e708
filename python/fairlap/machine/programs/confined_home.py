"""A home for a confined process, in place of the user's."""

from __future__ import annotations

import contextlib
import os
import shutil
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
    """Move the home of libraries to the last of these folders, and return the only file left of the user's own.

    Libraries keep caches, settings and counters in a home, which they expect to be able to write. The file holds the
    settings by which Keras computes.
    """
    home = str(writable[-1])
    settings = Path(os.environ.get("KERAS_HOME", "~/.keras"), "keras.json").expanduser()
    _copy_font_list(Path(home))
    os.environ["PYTHONUSERBASE"] = site.getuserbase()  # packages of the user
    for name in _FOLDERS_OF_LIBRARIES:
        if not any(Path(os.environ.get(name, "/")).is_relative_to(folder) for folder in writable):
            os.environ.pop(name, None)
    if settings.is_file():
        os.environ["KERAS_HOME"] = str(settings.parent)
    tempfile.tempdir = os.environ["TMPDIR"] = os.environ["HOME"] = home
    return settings


def _copy_font_list(home: Path) -> None:
    """Keras imports matplotlib, which otherwise looks at every font of the system, for a second or more."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    found = [*Path(os.environ.get("MPLCONFIGDIR") or caches / "matplotlib").glob("fontlist-*.json")]
    into = home / ".cache" / "matplotlib"
    for file in found:
        into.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # it is written again
            shutil.copyfile(file, into / file.name)
