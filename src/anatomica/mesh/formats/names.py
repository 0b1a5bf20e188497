"""Names of tissues as files and formats allow them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from anatomica.anatomy.labels import LabelTable


def plain_names(table: LabelTable, names: Iterable[str]) -> dict[str, str]:
    """Each tissue's name in letters, digits, `.`, `_` and `-` only; a label table may be anybody's.

    Names that are equal then, or but for their case, end with the label's id.

    >>> table = LabelTable.from_names({1: "left lung", 2: "left_lung", 3: "a/../b"})
    >>> plain_names(table, table.tissues)
    {'left lung': 'left_lung-1', 'left_lung': 'left_lung-2', 'a/../b': 'a_.._b'}
    """
    plain = {name: re.sub(r"[^A-Za-z0-9._-]", "_", name) for name in names}
    times = Counter(x.lower() for x in plain.values())
    return {name: f"{x}-{table.id_of(name)}" if times[x.lower()] > 1 else x for name, x in plain.items()}
