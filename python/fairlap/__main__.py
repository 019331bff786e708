"""``fairlap``, and ``python -m fairlap``."""

import sys


def main() -> None:
    """Run the command line; an interrupt gives one line also while modules are still being imported."""
    try:
        from fairlap.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        print("fairlap: interrupted", file=sys.stderr)
        if "--json" in sys.argv:
            from fairlap.cli.output import print_interruption

            print_interruption()
        sys.exit(130)


if __name__ == "__main__":
    main()
