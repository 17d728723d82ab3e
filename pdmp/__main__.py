"""The command as ``python -m pdmp``."""

from pdmp.cli import main

if __name__ == "__main__":
    main()
