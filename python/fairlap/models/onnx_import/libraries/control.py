"""How libraries choose between two functions, and repeat one: by Python, or by what they have for that themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairlap.models.onnx_import.errors import ModelFileInvalid

MOST_TRIPS = 2**15
"""Of a loop. The reference refuses inputs that ask for more, so no contestant runs for ever."""

Values = tuple[Any, ...]
Kinds = Sequence[tuple[str, tuple[int, ...]]]  # types and shapes
Trip = Callable[[Any, Values, Values], tuple[Values, Values]]
"""Of a number, states and a row of each array: the next states, and what is new."""
TripWhile = Callable[[Any, Values], tuple[Any, Values]]
"""Of a number and states: whether it goes on, and the next states."""


class PythonControl:
    """For libraries whose values can be looked at. A function's trips are numbered from 0, by an array of int64."""

    def choose(self: Any, condition: Any, then: Callable[[], Values], other: Callable[[], Values]) -> Values:
        return then() if bool(self.reshape(condition, ())) else other()

    def expect(self, condition: Any, wanted: bool) -> None:
        """Refuse inputs by which a condition is not what it must be. Only the reference looks."""

    def repeat(self: Any, step: Trip, trips: int, states: Values, rows: Values, made: Kinds) -> tuple[Values, Values]:
        """Compute ``states, new = step(number, states, row of each)`` so many times, and stack what is new.

        ``made`` are the kinds of that.
        """
        found = []
        for number in range(trips):
            states, new = step(self.whole(number), states, tuple(each[number] for each in rows))
            found.append(new)
        return states, tuple(self.stacked(kind) for kind in zip(*found, strict=True))

    def repeat_while(self: Any, step: TripWhile, goes_on: Any, most: Any, states: Values) -> Values:
        """Compute ``goes_on, states = step(number, states)`` as long as it goes on, and ``most`` times at most."""
        number, limit = 0, None if most is None else int(most)
        while bool(goes_on) and (limit is None or number < limit):
            if number == MOST_TRIPS:
                raise ModelFileInvalid(f"a Loop runs over {MOST_TRIPS:,} times with these inputs")
            goes_on, states = step(self.whole(number), states)
            number += 1
        return states

    def whole(self: Any, number: int) -> Any:
        return self.constant(np.array(number, np.int64))

    def stacked(self: Any, rows: Sequence[Any]) -> Any:
        return self.concat([self.reshape(each, (1, *each.shape)) for each in rows], 0)


class JaxControl:
    """By jax.lax. Only loops of a fixed number of trips can be differentiated backwards."""

    def choose(self: Any, condition: Any, then: Callable[[], Values], other: Callable[[], Values]) -> Values:
        found: Values = self.jax.lax.cond(
            self.reshape(condition, ()), lambda: self._typed(then()), lambda: self._typed(other())
        )
        return found

    def repeat(self: Any, step: Trip, trips: int, states: Values, rows: Values, made: Kinds) -> tuple[Values, Values]:
        def once(before: Values, given: Values) -> tuple[Values, Values]:
            number, *own = given
            after, new = step(number, before, tuple(own))
            return self._typed(after), self._typed(new)

        numbers = self.jnp.arange(trips, dtype=self._dtype("int64"))
        found: tuple[Values, Values] = self.jax.lax.scan(once, self._typed(states), (numbers, *rows), length=trips)
        return found

    def repeat_while(self: Any, step: TripWhile, goes_on: Any, most: Any, states: Values) -> Values:
        jnp, whole = self.jnp, self._dtype("int64")
        limit = jnp.minimum(jnp.asarray(MOST_TRIPS if most is None else most).reshape(()), MOST_TRIPS).astype(whole)

        def more(held: Values) -> Any:
            number, goes_on, _ = held
            return jnp.logical_and(goes_on, number < limit)

        def once(held: Values) -> Values:
            number, _, before = held
            goes_on, after = step(number, before)
            return number + 1, jnp.asarray(goes_on, bool).reshape(()), self._typed(after)

        start = jnp.zeros((), whole), jnp.asarray(goes_on, bool).reshape(()), self._typed(states)
        found: Values = self.jax.lax.while_loop(more, once, start)[2]
        return found

    def _typed(self: Any, values: Values) -> Values:
        """Without JAX's weak types, which would differ between branches or from trip to trip."""
        return tuple(self.jax.lax.convert_element_type(each, each.dtype) for each in values)


class TensorFlowControl:
    """By tf.cond and tf.while_loop."""

    def choose(self: Any, condition: Any, then: Callable[[], Values], other: Callable[[], Values]) -> Values:
        return tuple(self.tf.cond(self.tf.reshape(condition, ()), lambda: tuple(then()), lambda: tuple(other())))

    def repeat(self: Any, step: Trip, trips: int, states: Values, rows: Values, made: Kinds) -> tuple[Values, Values]:
        tf = self.tf
        columns = tuple(
            tf.TensorArray(self.cast(tf.zeros((), tf.int32), dtype).dtype, trips, element_shape=shape)
            for dtype, shape in made
        )

        def once(number: Any, before: Values, columns: Values) -> Values:
            after, new = step(tf.cast(number, tf.int64), before, tuple(tf.gather(each, number) for each in rows))
            written = tuple(column.write(number, each) for column, each in zip(columns, new, strict=True))
            return number + 1, self._shaped(after, before), written

        _, states, columns = tf.while_loop(
            lambda number, *_: number < trips, once, (tf.constant(0), tuple(states), columns), maximum_iterations=trips
        )
        stacked = zip(columns, made, strict=True)
        return tuple(states), tuple(tf.ensure_shape(each.stack(), (trips, *shape)) for each, (_, shape) in stacked)

    def repeat_while(self: Any, step: TripWhile, goes_on: Any, most: Any, states: Values) -> Values:
        tf = self.tf
        limit = tf.constant(MOST_TRIPS, tf.int64)
        if most is not None:
            limit = tf.minimum(limit, tf.reshape(tf.cast(most, tf.int64), ()))

        def once(number: Any, _: Any, before: Values) -> Values:
            goes_on, after = step(number, before)
            return number + 1, tf.reshape(goes_on, ()), self._shaped(after, before)

        start = tf.constant(0, tf.int64), tf.reshape(tf.convert_to_tensor(goes_on, tf.bool), ()), tuple(states)
        known = min(most, MOST_TRIPS) if isinstance(most, int) else None
        found = tf.while_loop(
            lambda number, goes_on, _: tf.logical_and(goes_on, number < limit), once, start, maximum_iterations=known
        )
        return tuple(found[2])

    def _shaped(self: Any, after: Values, before: Values) -> Values:
        return tuple(self.tf.ensure_shape(new, old.shape) for new, old in zip(after, before, strict=True))
