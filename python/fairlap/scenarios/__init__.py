"""Callables compared within one process: quick evidence about this process, not about the next one."""
