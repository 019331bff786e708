"""Diffrax in JAX, compiled ahead of time: ``diffrax`` is Tsit5, or Kvaerno5 where the problem is stiff."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fairlap.bench_models.initial_value_problems.problem import Problem
from fairlap.frameworks.adapter_parts.jax_settings import cache_in_force, environment_for
from fairlap.frameworks.adapter_parts.own_threads import threads_named
from fairlap.frameworks.contract import Contestant, Phase, Settings, refuse_what_is_unknown
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.frameworks.solvers.solver_library import (
    MOST_STEPS,
    Solved,
    SolverLibrary,
    inputs_of,
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

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return environment_for(settings)

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
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
            step = jax.jit(solve_with(problem, model.rates(), method, work.batch))
            arguments = arguments_of(problem, work.inputs)
        with phase("lower"):
            lowered = step.lower(*arguments)
        with phase("compile"):
            lowered.compile()  # kept by JAX: the step finds it

        def bind(arrays: Arrays) -> Callable[[], Solved]:
            return partial(step, *arguments_of(problem, arrays))

        pool = threads_named("tf_XLAEigen")
        return Contestant(
            bind=bind,
            done=jax.block_until_ready,
            outputs=outputs_of,
            weights=dict,
            in_force={
                **({"threads": str(pool)} if pool else {"threads_asked": str(wanted.threads)}),
                "precision": precision_of(arguments[0]),
                "solver": solver,
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
    problem: Problem, rates: Callable[[Any, Any], Any], solver: Any, batch: int, step: float | None = None
) -> Callable[..., Solved]:
    """Make the function to compile. With a ``step`` all steps have this length."""
    import diffrax
    import jax

    terms = diffrax.ODETerm(lambda time, state, _: rates(time, state))
    fixed = None if step is None else diffrax.ConstantStepSize()

    def of_item(start: Any, state: Any, relative: Any, absolute: Any) -> tuple[Any, Any, Any]:
        solution = diffrax.diffeqsolve(
            terms,
            solver,
            0.0,
            problem.end_time,
            step,
            start,
            stepsize_controller=fixed or diffrax.PIDController(rtol=relative, atol=absolute),
            max_steps=MOST_STEPS,
            throw=False,
        )
        is_right = solution.result == diffrax.RESULTS.successful
        end = jax.numpy.where(is_right, solution.ys[-1], jax.numpy.nan)
        return end, rates(problem.end_time, state), solution.stats["num_accepted_steps"]

    def of_batch(starts: Any, states: Any, relative: Any, absolute: Any) -> Solved:
        if batch == 1:  # without what items that wait for each other cost
            end, at_state, steps = of_item(starts[0], states[0], relative, absolute)
            return Solved(end[None], at_state[None], steps)
        found = jax.vmap(of_item, (0, 0, None, None))(starts, states, relative, absolute)
        return Solved(found[0], found[1], jax.numpy.mean(found[2]))

    return of_batch
