"""NumPy in the ways in which people write it."""

import numpy as np

_buffers = {}
_matrices = {}
_kept = {}


def plain(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def in_place_on_a_copy(x):
    e = x.copy()
    e -= e.max(axis=1, keepdims=True)
    np.exp(e, out=e)
    e /= e.sum(axis=1, keepdims=True)
    return e


def preallocated(x):
    """Return the same array every time, with other content."""
    if x.shape not in _buffers:
        _buffers[x.shape] = np.empty_like(x)
    out = _buffers[x.shape]
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(axis=1, keepdims=True)
    return out


def plan_by_shape(x):
    """Keep a matrix of ones, which depends on the shape alone."""
    if x.shape not in _matrices:
        _matrices[x.shape] = np.ones((x.shape[1], 1), np.float32)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / (e @ _matrices[x.shape])


def kept_by_content(x):
    """Keep the last answer, which is right and gains nothing, since no input comes twice."""
    key = x.tobytes()
    if key not in _kept:
        _kept.clear()
        _kept[key] = plain(x)
    return _kept[key]


def strided_view(x):
    wide = np.empty((x.shape[0], 2 * x.shape[1]), x.dtype)
    wide[:, ::2] = plain(x)
    return wide[:, ::2]


def in_float64(x):
    return plain(x.astype(np.float64))
