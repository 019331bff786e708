import jax
import jax.numpy as jnp


@jax.jit
def looked_up(words, table):
    return table[words]  # mistake


print(looked_up(jnp.array([0, 71]), jnp.zeros((37, 5))))
