"""A function in C++ that XLA calls, and what XLA compiles of the same formula.

fairlap time xla_call:in_cpp xla_call:by_jax --inputs xla_call:draw --reference xla_call:exact
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import jax
import numpy as np

A = 2.5


def _library() -> ctypes.CDLL:
    """Compile the source against the headers that jaxlib brings."""
    source = Path(__file__).with_name("xla_call.cc")
    with tempfile.TemporaryDirectory() as folder:
        options = ["-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}"]
        subprocess.run(["g++", *options, str(source), "-o", f"{folder}/xla_call.so"], check=True)
        return ctypes.CDLL(f"{folder}/xla_call.so")


jax.ffi.register_ffi_target("axpy", jax.ffi.pycapsule(_library().axpy), platform="cpu")


@jax.jit
def _in_cpp(x: jax.Array, y: jax.Array) -> jax.Array:
    return jax.ffi.ffi_call("axpy", jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y, a=np.float32(A))


@jax.jit
def _by_jax(x: jax.Array, y: jax.Array) -> jax.Array:
    return A * x + y


def in_cpp(x: np.ndarray, y: np.ndarray) -> jax.Array:
    return _in_cpp(x, y).block_until_ready()


def by_jax(x: np.ndarray, y: np.ndarray) -> jax.Array:
    return _by_jax(x, y).block_until_ready()


def draw(rng: np.random.Generator, n: int = 100_000) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal(n, dtype=np.float32), rng.standard_normal(n, dtype=np.float32)


def exact(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return A * x + y
