"""The store: a folder in which every finished patient lies under the hash of what decides it.

patients/ab/abcd….json      what was drawn; there if and only if the patient is finished
patients/ab/abcd….nii.gz    the label map of a patient that is kept, written before the JSON
claims/abcd….N              who is drawing it; N is the claim's number

The folder is the only truth. Any number of processes on any number of machines may work on it. A claim is a
file that exactly one process can create. Its owner renews its time of change; a claim that was not renewed
for `LEASE` seconds, or whose process is known to have ended, is void, and the next number can be claimed.
What a killed process leaves is an unfinished file, which nobody reads, and a claim, which becomes void.
"""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anatomica.anatomy.nifti import encode
from anatomica.cohort.patient import Patient
from anatomica.errors import AnatomicaError
from anatomica.files import (
    UNFINISHED,
    DamagedError,
    create_exclusive,
    json_bytes,
    read_sealed,
    sealed,
    write_together,
)
from anatomica.machine import has_ended, this_process

LEASE = 120.0
"""Seconds after which a claim of a machine that answers no more is void."""
RENEWALS = 6
"""A claim is renewed so often per lease: a network file system that hesitates does not lose it."""


@dataclass(frozen=True)
class Claim:
    """The right to draw a patient. It is renewed in the background until it is given back."""

    path: Path
    stop: threading.Event

    def release(self) -> None:
        self.stop.set()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


class Store:
    """A cohort's folder."""

    def __init__(self, folder: Path, lease: float = LEASE) -> None:
        self.folder, self.lease = folder, lease
        self.patients, self.claims = folder / "patients", folder / "claims"
        for made in (self.patients, self.claims):
            made.mkdir(parents=True, exist_ok=True)

    def record_path(self, key: str) -> Path:
        return self.patients / key[:2] / f"{key}.json"

    def map_path(self, key: str) -> Path:
        return self.patients / key[:2] / f"{key}.nii.gz"

    def done(self, key: str) -> bool:
        return self.record_path(key).is_file()

    def finished(self) -> set[str]:
        """Keys of all finished patients, by listing folders: no file is opened."""
        found: set[str] = set()
        for part in os.scandir(self.patients):
            if part.is_dir():
                found.update(
                    x.name[:-5] for x in os.scandir(part) if x.name.endswith(".json") and x.name[0] != "."
                )
        return found

    def record(self, key: str) -> dict[str, Any]:
        """What is known of a finished patient."""
        path = self.record_path(key)
        try:
            return read_sealed(path, always=True)
        except FileNotFoundError:
            raise AnatomicaError(f"{path} is not there any more; resume the cohort") from None
        except DamagedError as error:
            raise AnatomicaError(f"{path} cannot be read: {error}; delete it and resume the cohort") from None

    def put(self, key: str, patient: Patient) -> None:
        """Keep a finished patient: the label map first, the record last."""
        files = {self.record_path(key): json_bytes(sealed(patient.record))}
        if patient.label_map is not None:
            files = {self.map_path(key): encode(patient.label_map)} | files
        self.record_path(key).parent.mkdir(exist_ok=True)
        write_together(files)

    def claim(self, key: str) -> Claim | None:
        """The right to draw a patient; None if another process has it or if it is finished."""
        held = self._claims(key)
        if held and not self._void(held[-1]):
            return None
        number = _number(held[-1]) + 1 if held else 0
        path = self.claims / f"{key}.{number}"
        if not create_exclusive(path, this_process().encode()):
            return None
        for old in held:
            old.unlink(missing_ok=True)
        claim = Claim(path, threading.Event())
        # Finished, or claimed with a higher number, between the question and the claim.
        if self.done(key) or not self.holds(claim):
            claim.release()
            return None
        threading.Thread(target=self._renew, args=(claim,), daemon=True).start()
        return claim

    def claimed(self) -> set[str]:
        """Keys of the patients that a living process has claimed."""
        return {x.stem for x in self.claims.iterdir() if x.suffix != ".now" and not self._void(x)}

    def holds(self, claim: Claim) -> bool:
        """Whether a claim is still the last one: a process that slept through its lease has lost it."""
        held = self._claims(claim.path.stem)
        return bool(held) and held[-1] == claim.path

    def clear(self) -> None:
        """Delete what killed processes left: void claims, and files of which no claim holds the patient."""
        now = self._now()
        for path in list(self.claims.iterdir()):
            if path.suffix == ".now":
                with suppress(FileNotFoundError):
                    if now - path.stat().st_mtime > self.lease:
                        path.unlink()
            elif self.done(path.stem) or self._void(path):
                path.unlink(missing_ok=True)
        for part in self.patients.iterdir():
            for file in part.iterdir() if part.is_dir() else ():
                # Only who holds a claim writes: a file seen before its patient has none is nobody's.
                if UNFINISHED.fullmatch(file.name) and not self._claims(file.name[1:33]):
                    file.unlink(missing_ok=True)

    def _claims(self, key: str) -> list[Path]:
        return sorted(self.claims.glob(f"{key}.*"), key=_number)

    def _void(self, path: Path) -> bool:
        try:
            owner, changed = path.read_text(encoding="utf-8"), path.stat().st_mtime
        except FileNotFoundError:
            return False  # given back just now; whoever asks again finds it free
        with suppress(ValueError):
            if owner and has_ended(owner):
                return True
        return self._now() - changed > self.lease

    def _now(self) -> float:
        """The time by the clock of the file system, which machines share; their own may differ."""
        path = self.claims / f"{secrets.token_hex(8)}.now"
        create_exclusive(path, b"")
        try:
            return path.stat().st_mtime
        finally:
            path.unlink(missing_ok=True)

    def _renew(self, claim: Claim) -> None:
        while not claim.stop.wait(self.lease / RENEWALS):
            try:
                os.utime(claim.path)
            except OSError:
                return


def _number(path: Path) -> int:
    return int(path.suffix[1:]) if path.suffix[1:].isdigit() else -1
