"""How many samples are met, plausible and valid, and what they took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from anatomica.generation.sample import Outcome
from anatomica.mesh.proof import Proof


class Tally(NamedTuple):
    """Counts over samples; `mended` counts voxels, `mended_samples` those samples that have any, `proved` the
    surfaces whose proof holds."""

    samples: int = 0
    met: int = 0
    valid: int = 0
    implausible: int = 0
    drawn: int = 0
    mended: int = 0
    mended_samples: int = 0
    checks: int = 0
    surfaces: int = 0
    proved: int = 0

    @staticmethod
    def sum(parts: Iterable[Tally]) -> Tally:
        rows = list(parts)
        return Tally(*map(sum, zip(*rows, strict=True))) if rows else Tally()


def tally(outcomes: Iterable[Outcome], proofs: Mapping[int, Proof] = MappingProxyType({})) -> Tally:
    """The counts of some samples, and of the proofs of their surfaces by seed."""
    return Tally.sum(
        Tally(
            1,
            s.met,
            s.valid,
            not s.plausible,
            s.drawn,
            s.mended,
            s.mended > 0,
            len(s.checks),
            s.seed in proofs,
            s.seed in proofs and proofs[s.seed].holds,
        )
        for s in outcomes
    )
