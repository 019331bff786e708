"""What a contestant takes besides the time of its calls: getting ready, compiling, memory, energy and money."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fairlap.models.modes import MODES
from fairlap.request.work import Mode
from fairlap.results.column_definitions.about import Gauge, about
from fairlap.results.column_definitions.calls import Calls
from fairlap.results.column_definitions.estimate import Estimate

_phases = partial(about, group="phases")
_compilation = partial(about, group="compilation")
_memory = partial(about, group="memory")
_energy = partial(about, group="energy")
_cost = partial(about, group="cost")


class Resources(Calls, frozen=True, kw_only=True):
    import_s: Annotated[Estimate | None, _phases("Importing the framework.")]
    conversion_s: Annotated[
        Estimate | None, _phases("Converting a user's own model for the framework, where it was converted.")
    ]
    build_s: Annotated[Estimate | None, _phases("Building the model from its weights.")]
    compile_cold_s: Annotated[
        Estimate | None, _phases("Tracing, lowering and compiling ahead of the first call, with empty caches on disk.")
    ]
    compile_warm_s: Annotated[
        Estimate | None, _phases("The same with the caches that an earlier process of the race filled.")
    ]
    time_to_first_inference_s: Annotated[Estimate | None, _phases("From the start of the process to its first answer.")]
    time_to_first_gradient_s: Annotated[
        Estimate | None, _phases("From the start of the process to its first gradient.")
    ]

    graphs: Annotated[int | None, _compilation("Graphs, traces or programs that its compiler made of the model.")]
    graph_breaks: Annotated[
        int | None, _compilation("Places where the compiler left the rest of the function to Python.")
    ]
    operators_before: Annotated[int | None, _compilation("Operators that its compiler was given.")]
    kernels_after: Annotated[int | None, _compilation("Kernels that a call of the compiled model starts.")]
    operators_counted: Annotated[
        str | None, _compilation("What these two count; another framework counts other things.")
    ]
    recompile_stall_s: Annotated[
        dict[str, float],
        _compilation(
            "How much longer the first call at another batch, size or type took than later ones; building again "
            "included."
        ),
    ]
    recompile_absent: Annotated[dict[str, str], _compilation("Those without such a figure, and why.")]

    peak_memory_bytes: Annotated[
        Estimate | None,
        _memory(
            "The most that the process held at once, of the two peaks that follow; of a command, what the largest "
            "process of a run held, the median of its runs.",
            gauge=Gauge("peak_memory", "bytes", "Largest memory of its process."),
        ),
    ]
    peak_memory_until_ready_bytes: Annotated[
        Estimate | None, _memory("The most that it held from its start to its first answer.")
    ]
    peak_memory_while_running_bytes: Annotated[
        Estimate | None, _memory("The most that it held while it was warmed up and timed.")
    ]
    installed_bytes: Annotated[
        Estimate | None,
        _memory(
            "Size on disk of its package with those that it needs, as they were installed; of a command, of its "
            "program's file."
        ),
    ]
    allocations: Annotated[
        Estimate | None, _memory("How often a call allocates memory, where it was counted.", unit="allocations")
    ]
    allocated_bytes: Annotated[
        Estimate | None, _memory("How much a call allocates, freed again or not, where it was counted.")
    ]
    memory_bytes: Annotated[
        dict[str, float],
        _memory("Memory by layer: resident by kind, children, allocator, driver, and on disk; median of processes."),
    ]
    memory_absent: Annotated[dict[str, str], _memory("Layers of memory without a figure, and why.")]
    min_memory_bytes: Annotated[
        float | None, _memory("The smallest limit under which it still ran, and ran once more.")
    ]
    min_memory_resolution_bytes: Annotated[float | None, _memory("A limit smaller by this was not found to do.")]
    min_memory_limit: Annotated[
        str | None, _memory("What was limited: a control group, address space (not resident memory), or its own pool.")
    ]
    min_memory_tries: Annotated[int | None, _memory("Fresh processes that were tried for it.")]
    largest_batch: Annotated[
        int | None, _memory("The largest batch that was found to fit into the memory that it may use.")
    ]
    largest_batch_resolution: Annotated[int | None, _memory("A batch larger by this was not found to fit.")]
    largest_batch_ended_by: Annotated[
        str | None, _memory("Why it is not larger: out_of_memory, refused, limit (the largest to try), or budget.")
    ]
    largest_batch_memory_limit_bytes: Annotated[
        float | None, _memory("The resident memory that it was allowed in this search.")
    ]
    largest_batch_check: Annotated[str | None, _memory("How the answers at this batch were checked.")]
    memory_by_batch: Annotated[
        dict[str, float], _memory("Peak memory in bytes at each batch that --max-batch tried and that fitted.")
    ]
    time_per_item_by_batch_ns: Annotated[
        dict[str, float],
        _memory(
            "Time of one item at the same batches, the median of three calls; empty without --max-batch. For batches "
            "that were raced divide `judged` by `batch`."
        ),
    ]

    energy_per_item_j: Annotated[
        Estimate | None,
        _energy(
            "Energy for one item, by all sensors together; idle power included.",
            gauge=Gauge("energy_per_item", "joules", "Energy of one item."),
        ),
    ]
    idle_energy_per_item_j: Annotated[
        Estimate | None, _energy("What the idle machine would have drawn in the time of one item.")
    ]
    mean_power_w: Annotated[Estimate | None, _energy("Mean power while it was measured.")]
    peak_power_w: Annotated[
        Estimate | None,
        _energy("Highest power while it was measured: the sum of each sensor's peak, which may fall apart."),
    ]
    idle_power_w: Annotated[Estimate | None, _energy("Power of the idle machine, before the first block.")]
    energy_by_sensor_j: Annotated[
        dict[str, float],
        _energy("Energy for one item by each sensor that every process resolved, by the rule of the sum."),
    ]

    cost_per_1000_items: Annotated[
        Estimate | None,
        _cost(
            "Money for a thousand items at the given price.",
            is_money=True,
            gauge=Gauge("cost_per_1000_items", "", "Money for 1,000 items."),
        ),
    ]
    currency: Annotated[str | None, _cost("Of the cost.")]


def time_to_first(mode: Mode) -> str:
    """Name the column of the time to the first answer."""
    return f"time_to_first_{MODES[mode].first_answer}_s"
