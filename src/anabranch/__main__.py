"""The command `anabranch`, also as `python -m anabranch`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C stops it at any moment, also while its modules are loaded."""
    try:
        from anabranch.cli.main import main as run

        run()
    except KeyboardInterrupt:
        from anabranch.patches import python_interrupts

        sys.stderr.write("anabranch: stopped\n")
        python_interrupts.forget()
        sys.exit(130)
    except SystemExit as ended:
        from anabranch.patches import python_exit

        if isinstance(ended.code, int):
            python_exit.leave(ended.code)
        raise


if __name__ == "__main__":
    main()
