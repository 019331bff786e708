"""torchdiffeq: ``torchdiffeq`` is dopri5. All items of a batch take the same steps, as its ``odeint`` has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fairlap.bench_models.initial_value_problems.problem import Problem
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


class TorchDiffEq(SolverLibrary):
    name = "torchdiffeq"
    packages = ("torchdiffeq==0.2.5", "torch==2.13.0")
    module = "torchdiffeq"
    implementation = "torch"
    variants = ("", "dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")
    recommended = ("dopri5", "dopri5")  # it has none for stiff problems

    @classmethod
    def environment_for(cls, settings: Settings) -> dict[str, str]:
        return {"OMP_NUM_THREADS": str(settings.threads), "MKL_NUM_THREADS": str(settings.threads)}

    def prepare(self, work: Workload, wanted: Settings, phase: Phase) -> Contestant:
        from importlib.metadata import version

        refuse_what_is_unknown(type(self), work, wanted)
        with phase("import"):
            import torch
            import torchdiffeq  # noqa: F401
        torch.set_num_threads(wanted.threads)
        torch.set_grad_enabled(False)  # for the whole process: per call it would be timed
        self._version = version("torchdiffeq")
        with phase("build"):
            model = work.implementation(self.implementation)
            problem, rates = model.problem, model.rates()
            solver = self.solver_for(problem, wanted)
            times = torch.tensor([0.0, problem.end_time], dtype=torch.float64)

        def bind(arrays: Arrays) -> Callable[[], Solved]:
            return partial(solved, Counted(rates), solver, times, TensorInputs(problem, arrays))

        return Contestant(
            bind=bind,
            done=None,
            outputs=outputs_of,
            weights=dict,
            in_force={
                "threads": str(torch.get_num_threads()),
                "precision": precision_of(TensorInputs(problem, work.inputs).start),
                "solver": solver,
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
    """The rates, with a count of the calls to them and of the steps that the solver accepts."""

    def __init__(self, rates: Callable[[Any, Any], Any]) -> None:
        self.rates = rates
        self.steps = self.evaluations = 0

    def __call__(self, time: Any, state: Any) -> Any:
        self.evaluations += 1
        return self.rates(time, state)

    def callback_accept_step(self, _time: Any, _state: Any, _step: Any) -> None:
        self.steps += 1


def solved(counted: Counted, solver: str, times: Any, inputs: TensorInputs, **more: float) -> Solved:
    """Solve all items at once. ``more`` are options of the solver."""
    import torch
    from torchdiffeq import odeint

    counted.steps = counted.evaluations = 0
    try:
        end = odeint(
            counted,
            inputs.start,
            times,
            rtol=inputs.relative,
            atol=inputs.absolute,
            method=solver,
            options={"max_num_steps": MOST_STEPS, **more},
        )[-1]
    except AssertionError:  # too many steps, or one too small
        end = torch.full_like(inputs.start, torch.nan)
    return Solved(end, counted.rates(times[-1], inputs.state), counted.steps, counted.evaluations)
