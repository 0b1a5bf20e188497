"""Write src/anatomica/data/phantoms/spine_statistics.py from a file of spinal keypoints.

    python tools/spine_statistics.py keypoints.csv.gz

Correlations of two levels that fewer than LEAST_CASES columns show together are those of other levels as far
apart; the others are drawn towards these with the weight of PULL columns, because pairs that few columns
show are noisy. The nearest matrix without negative eigenvalues is kept. Tilts of neighbours are correlated
such that their differences have the SD of the turns.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from anatomica.data import spine_realism as sr
from anatomica.data.phantoms.levels import INDEX

OUT = Path(__file__).parents[1] / "src/anatomica/data/phantoms/spine_statistics.py"
PULL = 60
LEAST_EIGENVALUE = 0.003
ATLAS_TURN_DEG = 3.0
"""SD kept for the coronal turn at C2, instead of the 21 degrees by which annotators differ."""

HEAD = '''"""Spacing, tilts and turns of real vertebral columns: means, SDs and correlations by level.

Measured on body centres of {count} CTs of the VID keypoints (ImFusion, CC BY-SA 4.0; statistics are facts) by
`tools/spine_statistics.py`; `anatomica.data.spine_realism` defines the quantities. Many patients were scanned
twice, supine and prone, under names that do not tell: {twins} scans have a clear twin by their spacings and
pedicles. Leaving one of every two twins out moves no mean by more than {shift:.2f} SD and no SD by more than
{sd:.0f} %, so all scans count; the numbers of patients are between half of `count` and `count`.
The scans that show the neck and those that show the abdomen are other patients. So the mean tilts are summed
from the mean turns, around the mean of the measured tilts. The point in C1 was placed anywhere within 15 mm
from side to side; the coronal tilt of C1-C2 is that of C2-C3 with a turn of {atlas:.0f} degrees instead.
"""

from __future__ import annotations

import numpy as np

Row = tuple[str, int, float, float]


def _correlation(*rows: str) -> np.ndarray:
    """A correlation matrix from its lower triangle in thousandths, row by row without the diagonal."""
    matrix = np.eye(len(rows) + 1)
    for i, row in enumerate(rows, start=1):
        matrix[i, :i] = matrix[:i, i] = np.array(row.split(), dtype=float) / 1000
    return matrix


'''


def complete(found: np.ndarray, count: np.ndarray, next_to: np.ndarray | None = None) -> np.ndarray:
    """A correlation matrix without gaps and negative eigenvalues; `next_to` are the neighbours' values."""
    size = len(found)
    filled, last = np.eye(size), 0.0
    for lag in range(1, size):
        seen, weight = np.diag(found, lag), np.diag(count, lag)
        ok = np.isfinite(seen)
        if ok.any():
            # Not weighted by the count: else the lumbar pairs would speak for the neck.
            last = float(seen[ok].mean())
        pair = np.where(ok, (np.nan_to_num(seen) * weight + last * PULL) / (weight + PULL), last)
        if lag == 1 and next_to is not None:
            pair = next_to
        filled += np.diag(pair, lag) + np.diag(pair, -lag)
    # Alternating projections (Higham 2002): onto matrices without negative eigenvalues, then onto the known
    # diagonals, which carry the turns.
    near = filled
    for _ in range(2000):
        values, vectors = np.linalg.eigh(near)
        near = vectors @ np.diag(np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T
        if next_to is not None:
            at = np.arange(size - 1)
            near[at, at + 1] = near[at + 1, at] = next_to
        np.fill_diagonal(near, 1.0)
    values, vectors = np.linalg.eigh(near)
    near = vectors @ np.diag(np.maximum(values, LEAST_EIGENVALUE / 2)) @ vectors.T
    scale = 1 / np.sqrt(np.diag(near))
    return near * scale[:, None] * scale


def without_twins(columns: sr.Columns) -> np.ndarray:
    """Indices of the columns without one of every two that look like the same patient twice.

    Twins are each other's nearest in T12 to L5 (spacing and pedicles, in SDs), nearer than 0.72 times the
    next column, as one in a hundred is among as many independent columns of the same covariance.
    """
    low = INDEX["T12"]
    wanted = ("spacing", "interpedicular", "centre to pedicle")
    values = np.concatenate([sr.features(columns)[kind][:, low:] for kind in wanted], 1)
    full = np.flatnonzero(np.isfinite(values).all(1))
    scaled = (values[full] - values[full].mean(0)) / values[full].std(0)
    away = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    np.fill_diagonal(away, np.inf)
    nearest = away.argmin(1)
    first, second = np.sort(away, axis=1)[:, :2].T
    sure = first < 0.72 * second
    rows = np.arange(len(full))
    twin = (nearest[nearest] == rows) & sure & sure[nearest] & (rows > nearest)
    return np.setdiff1d(np.arange(len(columns)), full[twin])


def rows(name: str, kind: str, moments: tuple[np.ndarray, ...], labels: tuple[str, ...], unit: str) -> str:
    """The text of one table."""
    text = f"{name}: tuple[Row, ...] = (\n"
    for level, count, mean, sd in zip(labels, *moments, strict=True):
        text += f'    ("{level}", {count}, {mean:.2f}, {sd:.2f}),\n'
    return text + f')\n"""Name, count, mean and SD in {unit} of each {kind}."""\n\n'


def matrix(name: str, values: np.ndarray) -> str:
    """The text of one correlation matrix."""
    lines = [
        '    "' + " ".join(f"{round(1000 * x)}" for x in row[:i]) + '",\n' for i, row in enumerate(values)
    ]
    return f"{name} = _correlation(\n" + "".join(lines[1:]) + ")\n\n"


def main(path: str) -> None:
    columns = sr.read_keypoints(path)
    kinds = {kind: sr.trimmed(values) for kind, values in sr.features(columns).items()}
    single = without_twins(columns)
    shifts, changes = [], []
    for values in list(kinds.values())[:3]:
        _, mean, sd = sr.moments(values)
        _, mean_1, sd_1 = sr.moments(values[single])
        shifts.append(np.abs((mean_1 - mean) / sd).max())
        changes.append(100 * np.abs(sd_1 / sd - 1).max())
    text = HEAD.format(
        count=len(columns),
        twins=2 * (len(columns) - len(single)),
        shift=max(shifts),
        sd=max(changes),
        atlas=ATLAS_TURN_DEG,
    )
    text += rows("SPACING", "spacing", sr.moments(kinds["spacing"]), sr.PAIRS, "mm")
    text += matrix("SPACING_CORRELATION", complete(*sr.correlations(kinds["spacing"])))
    tilts = sr.tilts_deg(np.diff(columns.bodies_mm, axis=1))
    for plane, values in zip(("sagittal", "coronal"), tilts, strict=True):
        values = sr.trimmed(values)
        count, mean, sd = sr.moments(values)
        turns = sr.moments(kinds[f"{plane} turn"])
        turn_sd = turns[2].copy()
        if plane == "coronal":
            sd[0], turn_sd[0] = np.hypot(sd[1], ATLAS_TURN_DEG), ATLAS_TURN_DEG
        summed = np.concatenate([[0.0], np.cumsum(turns[1])])
        # Levels that many columns show, and that vary little, weigh more.
        summed += np.average(mean - summed, weights=np.sqrt(count) / sd**2)
        next_to = (sd[:-1] ** 2 + sd[1:] ** 2 - turn_sd**2) / (2 * sd[:-1] * sd[1:])
        whole = complete(*sr.correlations(values), next_to)
        given = np.sqrt(sd[:-1] ** 2 + sd[1:] ** 2 - 2 * np.diag(whole, 1) * sd[:-1] * sd[1:])
        ratio = given / turn_sd
        print(
            f"{plane}: SD of turns as drawn / real, {ratio.min():.2f} to {ratio.max():.2f};"
            f" tilts' means moved by {np.abs(summed - mean).max():.1f} degrees at most"
        )
        name = plane.upper()
        text += rows(f"{name}_TURN", f"{plane} turn", turns, sr.labels_of(f"{plane} turn"), "degrees")
        text += rows(f"{name}_TILT", f"{plane} tilt", (count, summed, sd), sr.PAIRS, "degrees")
        text += matrix(f"{name}_TILT_CORRELATION", whole)
    OUT.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1])
