"""Where a layer comes to rest, differentiated by the implicit function theorem."""

from __future__ import annotations

from fairlap.bench_models.differentiated_functions.equilibrium import equilibrium

IMPLEMENTED_IN = "fairlap.bench_models.differentiated_functions"
FUNCTION = equilibrium("fixed_point", is_implicit=True)
SPEC = FUNCTION.spec()
