"""Where a layer comes to rest, differentiated through its steps."""

from __future__ import annotations

from fairlap.bench_models.differentiated_functions.equilibrium import equilibrium

IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = equilibrium("fixed_point_unrolled", is_implicit=False)
SPEC = FUNCTION.spec()
