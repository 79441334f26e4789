"""Run ``python -m whisperops``: see ``commands``."""

from __future__ import annotations

import sys

from whisperops.commands import main

if __name__ == "__main__":
    sys.exit(main())
