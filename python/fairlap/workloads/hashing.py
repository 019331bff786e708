"""A hash of named arrays: equal exactly when names, types, shapes and bytes are."""

from __future__ import annotations

import hashlib

import numpy as np

from fairlap.workloads.workload import Arrays


def hash_of(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{name} {little.dtype.str} {list(array.shape)}\n".encode())
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
