"""What an adapter cannot do is refused with the reason, before anything is imported or built."""

from __future__ import annotations

from fairlap.frameworks.contract import Framework, Settings, Unsupported
from fairlap.workloads.workload import Workload


def refuse_what_is_unknown(
    framework: type[Framework],
    work: Workload,
    wanted: Settings,
    *,
    options: tuple[str, ...] = (),
    lacking: str = "",
    devices: tuple[str, ...] = ("cpu",),
) -> None:
    """``options`` are those the adapter knows; ``lacking`` says why there is no other precision."""
    name = framework.name
    if wanted.device.partition(":")[0] not in devices:
        raise Unsupported(f"{name} runs on {' or '.join(devices)} here; it was asked for {wanted.device}")
    if wanted.threads < 1:
        raise Unsupported(f"{name} needs at least one thread; it was asked for {wanted.threads}")
    if wanted.variant not in framework.variants:
        raise Unsupported(f"{name} has no variant {wanted.variant!r}")
    if work.mode not in framework.modes:
        raise Unsupported(f"{name} runs models only; it does not differentiate them")
    if work.precision not in framework.precisions:
        raise Unsupported(f"{name} has no {work.precision} on the CPU{lacking and f': {lacking}'}")
    for option in wanted.options:
        if option not in options:
            known = f"it has {', '.join(options)}" if options else "it has none"
            raise Unsupported(f"{name} has no option {option!r}; {known}")
