import jax
import jax.numpy as jnp


@jax.jit
def product(x, w):
    return x @ w  # mistake


product(jnp.zeros((4, 17)), jnp.zeros((13, 6)))
