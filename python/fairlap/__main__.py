"""``python -m fairlap``."""

from fairlap.cli import main

main()
