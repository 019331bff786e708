"""Models that users bring: each kind of file is one module in ``kinds``."""
