"""``python -m es_skipping.cli``, if the console script is not on the path."""

from __future__ import annotations

import sys

from es_skipping.cli import main

sys.exit(main())
