"""For tests of your own index types: ``pip install es-skipping[test]``, then subclass `IndexContract`.

>>> from es_skipping.testing import IndexContract
>>> IndexContract.setups                                               # doctest: +SKIP
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("es_skipping.testing.contract")  # so that a failure shows what was compared

from es_skipping.testing.contract import IndexContract, Setup  # noqa: E402

__all__ = ["IndexContract", "Setup"]
