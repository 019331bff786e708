"""TensorFlow Probability's solvers, as a graph or compiled by XLA: DormandPrince, or BDF where the problem is stiff.

All items of a batch take the same steps; BDF solves them as one system, with the Jacobian of TensorFlow. A gradient is
that of the adjoint equations, which a second solve carries backwards: the library has no other way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fairlap.bench_models.initial_value_problems.problem import BY_START, BY_WEIGHT, Problem
from fairlap.frameworks.adapter_parts.own_threads import threads_named
from fairlap.frameworks.contract import Contestant, Phase, Settings, refuse_what_is_unknown
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.frameworks.solvers.solver_library import (
    ADJOINT,
    GRADIENT,
    MOST_EVALUATIONS,
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

EXECUTION = "execution"
GRAPH, XLA = "graph", "xla"

_EXPLICIT = "DormandPrince"
_EVALUATIONS_OF_A_STEP = 6
_MOST_STEPS = {_EXPLICIT: MOST_EVALUATIONS // _EVALUATIONS_OF_A_STEP, "BDF": MOST_STEPS}
"""Rejected ones too, as the library counts."""

_GAVE_UP = "max_num_steps exceeded"
_ROUNDING = 1e-12

Arguments = tuple[Any, ...]  # weights, starts, drawn states, relative and absolute tolerance
Rates = Callable[[Any], Callable[[Any, Any], Any]]


class TensorFlowProbability(SolverLibrary):
    name = "tensorflow-probability"
    packages = ("tensorflow-probability==0.25.0", "tensorflow==2.21.0", "tf-keras==2.21.0")
    module = "tensorflow_probability"
    implementation = "tensorflow"
    variants = ("", _EXPLICIT, "BDF")
    recommended = (_EXPLICIT, "BDF")
    modes = ("solve", "solve-grad")
    options: ClassVar = {GRADIENT: (ADJOINT,), EXECUTION: (GRAPH, XLA)}

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
            "TF_NUM_INTRAOP_THREADS": str(settings.threads),
            "TF_NUM_INTEROP_THREADS": "1",
            "OMP_NUM_THREADS": str(settings.threads),
        }

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        refuse_what_is_unknown(type(self), work, wanted)
        gradient = gradient_asked(work.mode, wanted, ADJOINT)
        execution = wanted.options.get(EXECUTION, GRAPH)
        with phase("import"):
            import tensorflow as tf
            import tensorflow_probability as tfp
        tf.config.threading.set_intra_op_parallelism_threads(wanted.threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self._version = str(tfp.__version__)
        with phase("build"):
            model = work.implementation(self.implementation)
            problem = model.problem
            solver = self.solver_for(problem, wanted)
            solve = solve_with(problem, model.rates, solver)
            step = with_gradient(problem, solve) if gradient else solve
            weights = {name: tf.constant(each) for name, each in float64_weights(work.weights).items()}
            arguments = arguments_of(problem, weights, work.inputs)
        with phase("trace"):
            # Without autograph, which writes rewritten source into the temporary folder.
            function = tf.function(step, autograph=False, jit_compile=execution == XLA)
            traced = function.get_concrete_function(*arguments)
        ends = tf.function(step, autograph=False) if solver == _EXPLICIT and execution == XLA else None
        counted = tf.function(accepted_steps(problem, model.rates), autograph=False)

        end_without = partial(gave_up, problem, model.rates, gradient)

        class Bound(partial[Solved]):
            @cached_property
            def steps(self) -> Any:
                return result_of(counted, self.args[2])

        def bind(arrays: Arrays) -> Bound:
            given = arguments_of(problem, weights, arrays)
            return Bound(solved, traced if is_limited(ends, given) else no_result, end_without, given)

        def with_steps(call: Any, result: Solved) -> dict[str, npt.NDArray[Any]]:
            has_more = solver == _EXPLICIT and np.isfinite(result.end).all()
            return outputs_of(result._replace(steps=call.steps) if has_more else result)

        with phase("compile"):
            bind(work.inputs)()  # the first call optimizes the graph, or XLA compiles it
        pool = threads_named("tf_XLAEigen")
        return Contestant(
            bind=bind,
            done=None,  # on a CPU a call returns when it is complete
            outputs=outputs_of,
            outputs_of=with_steps,
            weights=lambda: float32_weights({name: each.numpy() for name, each in weights.items()}),
            in_force={
                "threads": str(tf.config.threading.get_intra_op_parallelism_threads()),
                "precision": precision_of(arguments[1].numpy()),
                "solver": solver,
                EXECUTION: execution,
                **limit_of(solver),
                **({"coefficients": rounding} if (rounding := rounding_of_coefficients(solver)) else {}),
                **({GRADIENT: gradient} if gradient else {}),
                "tensorflow": str(tf.__version__),
                **({"xla_threads": str(pool)} if pool else {}),
            },
            no_memory_because="TensorFlow keeps no statistics of memory on the CPU",
            compilation=lambda: Compilation(bind=bind),
        )


def arguments_of(problem: Problem, weights: Mapping[str, Any], arrays: Arrays) -> Arguments:
    import tensorflow as tf

    inputs = inputs_of(problem, arrays)
    numbers = (inputs.start, inputs.state, inputs.relative, inputs.absolute)
    return (weights, *(tf.constant(each, tf.float64) for each in numbers))


def result_of(function: Callable[..., Any], arguments: Arguments) -> Any:
    """Call it; None where the solver gave up."""
    try:
        return function(*arguments)
    except Exception as error:
        if _GAVE_UP not in str(error):
            raise
        return None


def is_limited(graph: Callable[..., Any] | None, arguments: Arguments) -> bool:
    """Whether it ends, in XLA too, which leaves out the check that ends DormandPrince: a graph solves first, untimed.

    Stiff equations, and the adjoint ones of those that contract, would take it hours.
    """
    return graph is None or result_of(graph, arguments) is not None


def no_result(*_arguments: Any) -> None:
    """Stand in for a function that would not end."""


def solved(function: Callable[..., Any], without: Callable[[Arguments], Solved], arguments: Arguments) -> Solved:
    found: Solved | None = result_of(function, arguments)
    return without(arguments) if found is None else found


def solve_with(problem: Problem, rates: Rates, solver: str, **more: float) -> Callable[..., Solved]:
    """Make the function to trace, whose first argument are the weights. ``more`` are options of the solver."""
    import tensorflow as tf

    def solve(weights: Any, start: Any, state: Any, relative: Any, absolute: Any) -> Solved:
        times = tf.constant([problem.end_time], tf.float64)  # the library would round a number of Python to fp32
        found = _integrate(rates, solver, weights, start, relative, absolute, times, **more)
        end, counts = found.states[0], found.diagnostics
        end = tf.where(counts.success, end, tf.constant(np.nan, tf.float64))
        # BDF takes a Jacobian in each accepted step. DormandPrince counts none, so another function does.
        steps = None if solver == _EXPLICIT else counts.num_jacobian_evaluations
        return Solved(end, rates(weights)(times[0], state), steps, counts.num_ode_fn_evaluations)

    return solve


def with_gradient(problem: Problem, solve: Callable[..., Solved]) -> Callable[..., Solved]:
    """Without the count of evaluations, which the library does not give for its second solve."""
    import tensorflow as tf

    sizes = tf.constant(problem.flat_sizes)

    def of_batch(weights: Any, start: Any, *others: Any) -> Solved:
        by = {BY_START: start, **{BY_WEIGHT + name: each for name, each in weights.items()}}
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(by)
            found = solve(weights, start, *others)
            loss = problem.loss(found.end, sizes, tf.reduce_mean)
        return Solved(found.end, found.rates, found.steps, None, loss, tape.gradient(loss, by))

    return of_batch


def accepted_steps(problem: Problem, rates: Rates, **more: float) -> Callable[..., Any]:
    """Make a function that counts DormandPrince's, by the times at which it took them up: rejected ones repeat one."""
    import tensorflow as tf
    import tensorflow_probability as tfp

    def count(weights: Any, start: Any, _state: Any, relative: Any, absolute: Any) -> Any:
        every = tfp.math.ode.ChosenBySolver(tf.constant(problem.end_time, tf.float64))
        found = _integrate(rates, _EXPLICIT, weights, start, relative, absolute, every, **more)
        return tf.size(tf.unique(found.times[:-1])[0])  # the last is that of the end, inside of a step

    return count


def _integrate(
    rates: Rates,
    solver: str,
    weights: Any,
    start: Any,
    relative: Any,
    absolute: Any,
    times: Any,
    **more: float,
) -> Any:
    import tensorflow as tf
    import tensorflow_probability as tfp

    method = getattr(tfp.math.ode, solver)(rtol=relative, atol=absolute, max_num_steps=_MOST_STEPS[solver], **more)
    return method.solve(
        lambda time, state, **constants: rates(constants)(time, state),
        tf.constant(0.0, tf.float64),
        start,
        times,
        constants=weights,
    )


def gave_up(problem: Problem, rates: Rates, gradient: str, arguments: Arguments) -> Solved:
    weights, start, state, *_ = arguments
    end = np.full(start.shape, np.nan)
    found = Solved(end, rates(weights)(problem.end_time, state), evaluations=None if gradient else MOST_EVALUATIONS)
    if not gradient:
        return found
    slopes = {BY_START: end, **{BY_WEIGHT + name: np.full(each.shape, np.nan) for name, each in weights.items()}}
    return found._replace(loss=np.nan, gradients=slopes)


def rounding_of_coefficients(solver: str) -> str:
    """Name what the method's own coefficients are rounded to, if they are: they sum to 1, which y' = 1 shows."""
    import tensorflow as tf
    import tensorflow_probability as tfp

    if solver != _EXPLICIT:
        return ""
    one = tf.constant(1.0, tf.float64)
    method = tfp.math.ode.DormandPrince(rtol=one, atol=one, first_step_size=one)
    found = method.solve(lambda _, state: tf.ones_like(state), 0 * one, 0 * one, tf.stack([one]))
    return "rounded to fp32" if abs(float(found.states[0]) - 1) > _ROUNDING else ""


def limit_of(solver: str) -> dict[str, str]:
    return (
        limit_in_force(MOST_EVALUATIONS, "evaluations") if solver == _EXPLICIT else limit_in_force(MOST_STEPS, "steps")
    )
