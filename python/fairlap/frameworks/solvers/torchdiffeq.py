"""torchdiffeq: ``torchdiffeq`` is dopri5. All items of a batch take the same steps, as its ``odeint`` has it.

A gradient goes back through these steps, or with ``gradient=adjoint`` through ``odeint_adjoint``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from fairlap.bench_models.initial_value_problems.problem import BY_START, BY_WEIGHT, Problem
from fairlap.frameworks.contract import Contestant, Phase, Settings, refuse_what_is_unknown
from fairlap.frameworks.contract_parts.compilation import Compilation
from fairlap.frameworks.solvers.solver_library import (
    ADJOINT,
    DIRECT,
    GRADIENT,
    MOST_EVALUATIONS,
    MOST_STEPS,
    GaveUp,
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


class TorchDiffEq(SolverLibrary):
    name = "torchdiffeq"
    packages = ("torchdiffeq==0.2.5", "torch==2.13.0")
    module = "torchdiffeq"
    implementation = "torch"
    variants = ("", "dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")
    recommended = ("dopri5", "dopri5")  # it has none for stiff problems
    modes = ("solve", "solve-grad")
    options: ClassVar = {GRADIENT: (DIRECT, ADJOINT)}

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {"OMP_NUM_THREADS": str(settings.threads), "MKL_NUM_THREADS": str(settings.threads)}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        from importlib.metadata import version

        refuse_what_is_unknown(type(self), work, wanted)
        gradient = gradient_asked(work.mode, wanted)
        with phase("import"):
            import torch
            import torchdiffeq  # noqa: F401
        torch.set_num_threads(wanted.threads)
        torch.set_grad_enabled(bool(gradient))  # for the whole process: per call it would be timed
        self._version = version("torchdiffeq")
        with phase("build"):
            model = work.implementation(self.implementation)
            given = float64_weights(work.weights)
            weights = {name: torch.from_numpy(each).requires_grad_(bool(gradient)) for name, each in given.items()}
            problem, rates = model.problem, model.rates(weights)
            solver = self.solver_for(problem, wanted)
            times = torch.tensor([0.0, problem.end_time], dtype=torch.float64)

        def bind(arrays: Arrays) -> Callable[[], Solved]:
            inputs, counted = TensorInputs(problem, arrays), Counted(rates)
            if not gradient:
                return partial(solved, counted, solver, times, inputs)
            inputs.start.requires_grad_()
            sizes = torch.from_numpy(problem.flat_sizes)
            return partial(differentiated, counted, solver, times, inputs, problem, sizes, weights, gradient)

        return Contestant(
            bind=bind,
            done=None,
            outputs=outputs_of,
            weights=lambda: float32_weights({name: each.detach() for name, each in weights.items()}),
            in_force={
                "threads": str(torch.get_num_threads()),
                "precision": precision_of(TensorInputs(problem, work.inputs).start),
                "solver": solver,
                **limit_in_force(MOST_EVALUATIONS, "evaluations"),
                **({GRADIENT: gradient} if gradient else {}),
                "torch": str(torch.__version__),
            },
            compilation=lambda: Compilation(bind=bind),
        )


class TensorInputs:
    def __init__(self, problem: Problem, arrays: Arrays) -> None:
        import torch

        inputs = inputs_of(problem, arrays)
        self.start, self.state = torch.from_numpy(inputs.start), torch.from_numpy(inputs.state)
        self.relative, self.absolute = inputs.relative, inputs.absolute


class Counted:
    """The rates, with a count of the calls to them, which has a limit, and of the steps that the solver accepts."""

    def __init__(self, rates: Callable[[Any, Any], Any]) -> None:
        self.rates = rates
        self.steps = self.evaluations = 0

    def __call__(self, time: Any, state: Any) -> Any:
        if self.evaluations == MOST_EVALUATIONS:
            raise GaveUp
        self.evaluations += 1
        return self.rates(time, state)

    def callback_accept_step(self, _time: Any, _state: Any, _step: Any) -> None:
        self.steps += 1


def solved(
    counted: Counted, solver: str, times: Any, inputs: TensorInputs, integrate: Any = None, **more: float
) -> Solved:
    """Solve all items at once. ``more`` are options of the solver."""
    import torch
    from torchdiffeq import odeint

    integrate = integrate or odeint
    counted.steps = counted.evaluations = 0
    try:
        end = integrate(
            counted,
            inputs.start,
            times,
            rtol=inputs.relative,
            atol=inputs.absolute,
            method=solver,
            options={"max_num_steps": MOST_STEPS, **more},
        )[-1]
    except (AssertionError, GaveUp):  # the first is for too many steps, or one too small
        end = torch.full_like(inputs.start, torch.nan)
    return Solved(end, counted.rates(times[-1], inputs.state), counted.steps, counted.evaluations)


def differentiated(
    counted: Counted,
    solver: str,
    times: Any,
    inputs: TensorInputs,
    problem: Problem,
    sizes: Any,
    weights: Mapping[str, Any],
    gradient: str,
) -> Solved:
    """Solve, and take the gradient of the loss; it is not-a-number where the solver gives up on either way."""
    import torch
    from torchdiffeq import odeint, odeint_adjoint

    names, by = [BY_START, *(BY_WEIGHT + name for name in weights)], [inputs.start, *weights.values()]
    adjoint = partial(odeint_adjoint, adjoint_params=tuple(weights.values()))
    found = solved(counted, solver, times, inputs, adjoint if gradient == ADJOINT else odeint)
    loss = problem.loss(found.end, sizes)
    try:
        slopes = torch.autograd.grad(loss, by) if loss.requires_grad else None
    except (AssertionError, GaveUp):  # as in ``solved``, of the adjoint equations
        slopes = None
    if slopes is None:
        slopes = tuple(torch.full_like(each, torch.nan) for each in by)
    return Solved(
        found.end.detach(),
        found.rates.detach(),
        found.steps,
        counted.evaluations,
        loss.detach(),
        dict(zip(names, slopes, strict=True)),
    )
