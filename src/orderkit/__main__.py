"""Let ``python -m orderkit`` be ``orderkit``."""

from orderkit.cli.main import main

if __name__ == "__main__":
    main()
