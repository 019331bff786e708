"""Environment variables that affect the speed of a framework. Secrets are never recorded, nor logins in addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fairlap.secrets import without_secrets

PREFIX = "variable "
NOT_KEPT = "set; value not recorded"
EMPTY = "set, but empty"

# Not all of TF_: another well-known tool passes its users' values in variables with that prefix.
_THAT_MATTER = (
    "BLIS_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DNNL_",
    "GLIBC_TUNABLES",
    "GOMP_",
    "GOTO_",
    "JAX_",
    "KERAS_",
    "KMP_",
    "LD_BIND_NOW",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "MALLOC_",
    "MIMALLOC_",
    "MKL_",
    "MXNET_",
    "NCCL_",
    "NUMEXPR_",
    "NVIDIA_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "OPENVINO_",
    "ORT_",
    "OV_",
    "PYTHONDEVMODE",
    "PYTHONHASHSEED",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTORCH_",
    "TCMALLOC_",
    "TF_CPP_",
    "TF_CUDNN_",
    "TF_DETERMINISTIC_",
    "TF_DISABLE_",
    "TF_ENABLE_",
    "TF_FORCE_",
    "TF_GPU_",
    "TF_NUM_",
    "TF_USE_",
    "TF_XLA_",
    "TORCH",
    "VECLIB_",
    "XLA_",
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|PRIVATE|COOKIE|SIGNATURE|LICEN[CS]E", re.IGNORECASE)
# To the last @: a slash in a password is not valid in an address, but people write it there.
_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^\s,]*@")
_QUERY = re.compile(r"(?P<address>[A-Za-z][A-Za-z0-9+.-]*://[^\s?#]*)[?#]\S*")
_MOST_CHARACTERS = 500


def variable_facts(environment: Mapping[str, str]) -> dict[str, str]:
    return {PREFIX + _as_text(name): kept(name, environment[name]) for name in sorted(environment) if matters(name)}


def matters(name: str) -> bool:
    return name.startswith(_THAT_MATTER)


def kept(name: str, value: str) -> str:
    """Keep the part of a value that may be stored; an address loses its login and what follows a question mark."""
    if _SECRET.search(name) or _looks_like_setting_a_secret(value):
        return NOT_KEPT
    bare = without_secrets(_QUERY.sub(r"\g<address>", _LOGIN.sub(r"\g<scheme>", value)))
    bare = _as_text(bare)
    if not bare:
        return EMPTY
    return bare if len(bare) <= _MOST_CHARACTERS else f"{bare[:_MOST_CHARACTERS]}... ({len(bare)} characters)"


def _as_text(text: str) -> str:
    """Bytes that are not valid UTF-8 appear as lone surrogates, which cannot be written to a file."""
    return text.encode(errors="replace").decode()


def _looks_like_setting_a_secret(value: str) -> bool:
    """Such as ``--token=...`` among the flags in a variable."""
    names = re.findall(r"([A-Za-z0-9_.-]+)\s*[=:]", value)
    return any(_SECRET.search(name) for name in names)


@contextmanager
def variables_kept() -> Iterator[None]:
    """Around imports of packages that set variables for their process, which workers would inherit."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
