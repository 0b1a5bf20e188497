"""Phantoms into the cache format, so that training reads made-up and real patients alike."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from anatomica.anatomy.bounds import check_seed
from anatomica.anatomy.catalogue import anatomy as anatomy_of
from anatomica.data.cache import Cache
from anatomica.data.prepare import Item, Job, Loaded, prepare
from anatomica.errors import AnatomicaError


def build_phantom_cache(
    anatomy: str,
    count: int,
    out: str | Path,
    n: int = 64,
    seed: int = 0,
    workers: int = 1,
    progress: bool = False,
) -> Cache:
    """Patients `seed` to `seed + count - 1` of the phantom population at n^3, each with its truth."""
    if count < 1:
        raise AnatomicaError(f"the number of phantoms must be at least 1, not {count}")
    about, seed = anatomy_of(anatomy), check_seed(seed, count)
    job = Job(Path(out), about, n, "phantoms")
    return prepare(items(about.name, range(seed, seed + count), n), job, workers, progress)


def items(anatomy: str, seeds: range, n: int) -> list[Item]:
    """One item per seed. A phantom's source files are the code that draws it: new code makes new phantoms."""
    from anatomica.data import phantoms

    code = tuple(sorted(Path(phantoms.__file__).parent.glob("*.py")))
    ids = {seed: f"{anatomy}-{seed:06d}" for seed in seeds}
    return [
        Item(id, id, f"phantom {anatomy} seed {seed}", code, partial(_load, anatomy, seed, n))
        for seed, id in ids.items()
    ]


def _load(anatomy: str, seed: int, n: int) -> Loaded:
    from anatomica.data.phantoms import phantom

    made = phantom(anatomy, seed, n)
    return Loaded(made.label_map, made.truth.as_json())
