"""The driver that all sources share: hash, load, check, frame and store each case, in parallel, resumable."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from anatomica.anatomy.catalogue import Anatomy, is_shipped, record_digest
from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.anatomy.nifti import encode
from anatomica.data.cache import (
    Cache,
    Case,
    Exclusion,
    case_path,
    read_record,
    record_path,
    split_of,
    truth_path,
    write_manifest,
    write_record,
)
from anatomica.data.exclusion import NO_RULES, Rules, faults
from anatomica.errors import AnatomicaError
from anatomica.files import (
    CannotWriteError,
    clear_unfinished,
    json_bytes,
    read_json,
    write_atomic,
    write_json,
)
from anatomica.machine import end_with_parent


class Loaded(NamedTuple):
    """A source's label map with our table, and what is known of it beyond (a phantom's truth)."""

    label_map: LabelMap
    truth: dict[str, Any] | None = None


@dataclass(frozen=True)
class Item:
    """One case that a source offers. `load` travels to worker processes, so it is a partial of a plain
    function. `files` are what the case is made of: a change in them makes the case anew.
    """

    id: str
    patient: str
    source: str
    files: tuple[Path, ...]
    load: Callable[[], Loaded]


@dataclass(frozen=True)
class Job:
    """How a cache is made."""

    folder: Path
    anatomy: Anatomy
    n: int
    source: str
    rules: Rules = NO_RULES
    options: tuple[tuple[str, str], ...] = ()
    """Further settings of the source that change its cases (label mapping, crops), for the manifest."""

    def settings(self) -> dict[str, Any]:
        # A user's record may change under its name, and the cases with it.
        own = {} if is_shipped(self.anatomy) else {"anatomy_record_sha256": record_digest(self.anatomy)}
        return {
            "anatomy": self.anatomy.name,
            **own,
            "n": self.n,
            "source": self.source,
            "rules": asdict(self.rules),
            "options": dict(self.options),
        }


@dataclass(frozen=True)
class Failure:
    """A case that the machine prevented (a disk that cannot be read, too little memory); never recorded."""

    id: str
    reason: str


def prepare(items: list[Item], job: Job, workers: int = 1, progress: bool = False) -> Cache:
    """Bring every item into the cache. Killed and run again, it goes on where it was and ends the same.

    What the machine prevents is tried once more when all else is done. If that fails too, the run ends with
    an error and without a manifest: no patient is left out because a disk was full for a minute.
    """
    if not items:
        raise AnatomicaError(f"no case of {job.source} found")
    id, times = Counter(item.id for item in items).most_common(1)[0]
    if times > 1:
        raise AnatomicaError(f"{job.source}: {times} files would become the same case {id!r}; rename them")
    _open_folder(job)
    found = list(_shown(_run(items, job, workers), len(items), progress))
    records = [r for r in found if not isinstance(r, Failure)]
    failed = {r.id for r in found if isinstance(r, Failure)}
    again = [make_case(item, job) for item in items if item.id in failed]
    records += [r for r in again if not isinstance(r, Failure)]
    if failures := [r for r in again if isinstance(r, Failure)]:
        first = failures[0]
        raise AnatomicaError(
            f"{len(failures)} of {len(items)} cases could not be made, first {first.id}: {first.reason}; "
            "run the same command again when that is mended, finished cases are kept"
        )
    _remove_strangers(job.folder, {r.id: r for r in records})
    return write_manifest(job.folder, job.anatomy, job.n, job.settings(), records)


def case_id(*parts: str) -> str:
    """A file name out of a patient's and a scan's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "_".join(parts)).strip(".-") or "case"


Outcome = Case | Exclusion | Failure


def _run(items: list[Item], job: Job, workers: int) -> Iterator[Outcome]:
    if workers <= 1:
        yield from (make_case(item, job) for item in items)
        return
    # spawn: forking a process that already runs threads (torch, BLAS) can hang the child.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start_worker) as pool:
        futures = [pool.submit(make_case, item, job) for item in items]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise AnatomicaError(
                f"a worker process died, most likely because memory ran out; run again with fewer than "
                f"{workers} workers: finished cases are kept"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what has not begun would fail as well
            raise


def _start_worker() -> None:
    """One thread per worker, and no worker that outlives a killed run."""
    os.environ["OMP_NUM_THREADS"] = "1"
    end_with_parent()


def make_case(item: Item, job: Job) -> Outcome:
    """One item into the cache; what the machine prevents becomes a failure, of which nothing is recorded.

    A cache that cannot be written to is an exception: no other case could be kept either.
    """
    try:
        return _case(item, job)
    except CannotWriteError:
        raise
    except OSError as error:
        return Failure(item.id, f"{error.filename or item.source}: {error.strerror or error}")
    except MemoryError as error:
        return Failure(item.id, f"{item.source}: not enough memory ({error})")


def _case(item: Item, job: Job) -> Case | Exclusion:
    """The case as an earlier run left it, or made; a bad file becomes an exclusion with its reason."""
    sha256 = digest(item.files)
    record = read_record(job.folder, item.id)
    if record is not None and record.source_sha256 == sha256 and not _is_unforeseen(record):
        return record
    excluded = partial(Exclusion, item.id, item.patient, item.source, sha256)
    try:
        record = _store(item, job, sha256, excluded)
    except AnatomicaError as error:
        record = excluded(f"unreadable: {_without_folders(str(error), item)}")
    except (OSError, MemoryError):
        raise
    except Exception as error:
        # Thousands of files from others: whatever one of them provokes must not cost the rest of the run.
        record = excluded(f"{UNFORESEEN}{type(error).__name__}: {_without_folders(str(error), item)}")
    write_record(job.folder, record)
    return record


UNFORESEEN = "failed: "
"""How the reason begins of a case that provoked an error that nobody thought of."""


def _is_unforeseen(record: Case | Exclusion) -> bool:
    """Whether a case was left out for no fault that is known to be its own: it is tried in every run."""
    return isinstance(record, Exclusion) and record.reason.startswith(UNFORESEEN)


def _store(item: Item, job: Job, sha256: str, excluded: Callable[[str], Exclusion]) -> Case | Exclusion:
    loaded = item.load()
    cube = to_cube(loaded.label_map, job.anatomy, job.n)
    reasons = faults(loaded.label_map, cube, job.anatomy, job.rules)
    if reasons:
        return excluded("; ".join(reasons))
    truth, data = None if loaded.truth is None else json_bytes(loaded.truth), encode(cube)
    if truth is not None:
        write_atomic(truth_path(job.folder, item.id), truth)
    write_atomic(case_path(job.folder, item.id), data)
    present = cube.present()
    return Case(
        id=item.id,
        patient=item.patient,
        split=split_of(item.patient),
        source=item.source,
        source_sha256=sha256,
        affine=tuple(tuple(float(v) for v in row) for row in cube.affine),
        present=present,
        volumes_ml={t: round(cube.volume_ml(t), 6) for t in present},
        sha256=hashlib.sha256(data).hexdigest(),
        truth_sha256="" if truth is None else hashlib.sha256(truth).hexdigest(),
    )


def digest(files: tuple[Path, ...]) -> str:
    """One SHA-256 over the files' names and contents."""
    total = hashlib.sha256()
    for file in files:
        total.update(file.name.encode() + b"\0")
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _open_folder(job: Job) -> None:
    """Make the cache's folders, or take up those of a killed run and clear its unfinished files away."""
    _check_folder(job)
    job.folder.mkdir(parents=True, exist_ok=True)
    write_json(job.folder / "settings.json", job.settings())  # first, for it marks the folder as a cache
    for folder in (job.folder, job.folder / "cases", job.folder / "records"):
        folder.mkdir(exist_ok=True)
        clear_unfinished(folder)


def _check_folder(job: Job) -> None:
    """Refuse a folder that is somebody else's, or a cache made in another way."""
    path = job.folder / "settings.json"
    if not path.is_file():
        if job.folder.exists() and not _is_empty(job.folder):
            raise AnatomicaError(
                f"{job.folder} is neither empty nor a cache (it has no settings.json); choose another --out"
            )
        return
    try:
        before = read_json(path)
    except ValueError:
        before = None
    if not isinstance(before, dict) or not before.keys() >= job.settings().keys():
        raise AnatomicaError(f"{path} does not hold the settings of a cache; choose another --out")
    other = [k for k, v in job.settings().items() if before[k] != v]
    if other:
        was = ", ".join(f"{k}={before[k]}" for k in other)
        raise AnatomicaError(
            f"{job.folder}: this cache was made with {was}; choose another --out, or delete it"
        )


def _is_empty(folder: Path) -> bool:
    """Whether a folder holds nothing but hidden files."""
    return folder.is_dir() and all(file.name.startswith(".") for file in folder.iterdir())


def _remove_strangers(folder: Path, records: dict[str, Case | Exclusion]) -> None:
    """Delete cases whose source is gone or that are excluded now: a cache mirrors its source.

    Only files of cases with a record are deleted; whatever else somebody keeps there stays.
    """
    known = {file.stem for file in (folder / "records").glob("*.json")}
    for id in known:
        record = records.get(id)
        if record is None:
            record_path(folder, id).unlink()
        if not isinstance(record, Case):
            case_path(folder, id).unlink(missing_ok=True)
            truth_path(folder, id).unlink(missing_ok=True)


def _without_folders(message: str, item: Item) -> str:
    """Errors name files in full; in the manifest the file's name does, wherever the data set lies."""
    for folder in sorted({str(p) for f in item.files for p in f.parents[:3]}, key=len, reverse=True):
        message = message.replace(folder + os.sep, "")
    return message


def _shown(records: Iterator[Outcome], count: int, progress: bool) -> Iterator[Outcome]:
    """The same records with a progress bar on stderr; each exclusion and failure is said as it happens."""
    if not progress:
        yield from records
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("cases", total=count)
        for record in records:
            if not isinstance(record, Case):
                what = "left out" if isinstance(record, Exclusion) else "tried again later"
                console.print(
                    f"[yellow]{what}[/] {escape(record.id)}: {escape(record.reason)}",
                    highlight=False,
                    soft_wrap=True,
                )
            bar.advance(task)
            yield record
