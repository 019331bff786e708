"""The version of fairlap. CMake and pyproject.toml read it here, so that commands know it without the engine."""

__version__ = "0.1.0"
