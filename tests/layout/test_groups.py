"""A column group says what makes no sense."""

from __future__ import annotations

import pytest

from es_skipping.layout.groups.group import ColumnGroup


@pytest.mark.parametrize(
    ("columns", "masters"), [((), ()), (("a", "a"), ()), (("a",), ("b",))], ids=["none", "twice", "foreign master"]
)
def test_what_makes_no_sense_is_refused(columns: tuple[str, ...], masters: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"group|masters"):
        ColumnGroup(columns, (), masters)


def test_a_layout_may_hold_every_row_of_some_columns_only() -> None:
    layout = ColumnGroup(("a", "b"), (), masters=("b",))
    assert (layout.columns, layout.masters) == (("a", "b"), ("b",))
