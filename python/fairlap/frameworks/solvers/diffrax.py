"""Diffrax in JAX, compiled ahead of time: ``diffrax`` is Tsit5, or Kvaerno5 where the problem is stiff.

A gradient goes back through the steps, some of which are taken again from checkpoints, or with ``gradient=adjoint``
through a second solve (``BacksolveAdjoint``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy.typing as npt

from fairlap.bench_models.initial_value_problems.problem import BY_START, BY_WEIGHT, Problem
from fairlap.frameworks.adapter_parts.jax_settings import cache_in_force, environment_for
from fairlap.frameworks.adapter_parts.own_threads import threads_named
from fairlap.frameworks.contract import Contestant, Phase, Settings, refuse_what_is_unknown
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.frameworks.solvers.solver_library import (
    ADJOINT,
    DIRECT,
    GRADIENT,
    MOST_STEPS,
    Solved,
    SolverLibrary,
    float32_weights,
    float64_weights,
    gradient_asked,
    inputs_of,
    limit_in_force,
    outputs_of,
    precision_of,
)
from fairlap.models.arrays import Arrays
from fairlap.models.workload import Workload

Arguments = tuple[Any, Any, Any, Any]  # starts, drawn states, relative and absolute tolerance


class Diffrax(SolverLibrary):
    name = "diffrax"
    packages = ("diffrax==0.7.2", "jax==0.10.2")
    module = "diffrax"
    implementation = "jax"
    variants = ("", "Tsit5", "Dopri5", "Dopri8", "Bosh3", "Heun", "Kvaerno3", "Kvaerno4", "Kvaerno5")
    recommended = ("Tsit5", "Kvaerno5")
    modes = ("solve", "solve-grad")
    options: ClassVar = {GRADIENT: (DIRECT, ADJOINT)}

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return environment_for(settings)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        gradient = gradient_asked(work.mode, wanted)
        with phase("import"):
            import diffrax
            import jax
        jax.config.update("jax_enable_x64", True)
        self._version = str(diffrax.__version__)
        with phase("build"):
            model = work.implementation(self.implementation)
            problem = model.problem
            solver = self.solver_for(problem, wanted)
            method = getattr(diffrax, solver)()
            way = diffrax.BacksolveAdjoint() if gradient == ADJOINT else diffrax.RecursiveCheckpointAdjoint()
            solve = solve_with(problem, model.rates, method, work.batch, way=way)
            step = jax.jit(without_count(with_gradient(problem, solve) if gradient else solve))
            counted = jax.jit(lambda *arguments: solve(*arguments).steps)
            weights = jax.device_put(float64_weights(work.weights))
            arguments = arguments_of(problem, work.inputs)
        with phase("lower"):
            lowered = step.lower(weights, *arguments)
        with phase("compile"):
            lowered.compile()  # kept by JAX: the step finds it

        class Bound(partial[Solved]):
            @cached_property
            def steps(self) -> Any:
                return counted(*self.args)

        def bind(arrays: Arrays) -> Bound:
            return Bound(step, weights, *arguments_of(problem, arrays))

        def with_steps(call: Any, result: Solved) -> dict[str, npt.NDArray[Any]]:
            return outputs_of(result._replace(steps=call.steps))

        pool = threads_named("tf_XLAEigen")
        return Contestant(
            bind=bind,
            done=jax.block_until_ready,
            outputs=outputs_of,
            outputs_of=with_steps,
            weights=partial(float32_weights, weights),
            in_force={
                **({"threads": str(pool)} if pool else {"threads_asked": str(wanted.threads)}),
                "precision": precision_of(arguments[0]),
                "solver": solver,
                **limit_in_force(MOST_STEPS, "steps"),
                **({GRADIENT: gradient} if gradient else {}),
                "jax": str(jax.__version__),
                "x64": str(jax.config.values.get("jax_enable_x64")).lower(),
                "compilation_cache": cache_in_force(jax.config.values.get("jax_compilation_cache_dir")),
            },
            no_memory_because="JAX keeps no statistics of memory on the CPU",
            compilation=lambda: Compilation(bind=bind),
            shared_by_threads=True,
        )


def arguments_of(problem: Problem, arrays: Arrays) -> Arguments:
    """On JAX's device, so that one compiled function solves at every tolerance."""
    import jax
    import numpy as np

    inputs = inputs_of(problem, arrays)
    relative, absolute = np.float64(inputs.relative), np.float64(inputs.absolute)
    found: Arguments = jax.device_put((inputs.start, inputs.state, relative, absolute))
    return found


def solve_with(
    problem: Problem,
    rates: Callable[[Any], Callable[[Any, Any], Any]],
    solver: Any,
    batch: int,
    step: float | None = None,
    way: Any = None,
) -> Callable[..., Solved]:
    """Make the function to compile, whose first argument are the weights. With a ``step`` all have this length.

    ``rates`` takes the weights. ``way`` is how a gradient of it would be taken.
    """
    import diffrax
    import jax

    terms = diffrax.ODETerm(lambda time, state, weights: rates(weights)(time, state))
    fixed = None if step is None else diffrax.ConstantStepSize()
    way = way or diffrax.RecursiveCheckpointAdjoint()

    def of_item(weights: Any, start: Any, state: Any, relative: Any, absolute: Any) -> tuple[Any, Any, Any]:
        solution = diffrax.diffeqsolve(
            terms,
            solver,
            0.0,
            problem.end_time,
            step,
            start,
            weights,
            stepsize_controller=fixed or diffrax.PIDController(rtol=relative, atol=absolute),
            max_steps=MOST_STEPS,
            throw=False,
            adjoint=way,
        )
        is_right = solution.result == diffrax.RESULTS.successful
        end = jax.numpy.where(is_right, solution.ys[-1], jax.numpy.nan)
        return end, rates(weights)(problem.end_time, state), solution.stats["num_accepted_steps"]

    def of_batch(weights: Any, starts: Any, states: Any, relative: Any, absolute: Any) -> Solved:
        if batch == 1:  # without what items that wait for each other cost
            end, at_state, steps = of_item(weights, starts[0], states[0], relative, absolute)
            return Solved(end[None], at_state[None], steps)
        found = jax.vmap(of_item, (None, 0, 0, None, None))(weights, starts, states, relative, absolute)
        return Solved(found[0], found[1], jax.numpy.mean(found[2]))

    return of_batch


def without_count(solve: Callable[..., Solved]) -> Callable[..., Solved]:
    """Leave out the steps, whose count makes a loop of small equations a twentieth slower."""
    return lambda *arguments: solve(*arguments)._replace(steps=None)


def with_gradient(problem: Problem, solve: Callable[..., Solved]) -> Callable[..., Solved]:
    import jax

    def loss(weights: Any, starts: Any, *others: Any) -> tuple[Any, Solved]:
        found = solve(weights, starts, *others)
        return problem.loss(found.end, problem.flat_sizes), found

    def of_batch(weights: Any, starts: Any, *others: Any) -> Solved:
        of_loss = jax.value_and_grad(loss, (0, 1), has_aux=True)
        (value, found), (by_weight, by_start) = of_loss(weights, starts, *others)
        named = {BY_WEIGHT + name: each for name, each in by_weight.items()}
        return Solved(found.end, found.rates, found.steps, None, value, {BY_START: by_start, **named})

    return of_batch
