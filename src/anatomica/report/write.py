"""The folder of a run: report.json, report.html, and pictures. It grows on the disk, not in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from anatomica.anatomy.catalogue import Anatomy, from_card
from anatomica.files import Place, Spool, write_atomic
from anatomica.generation.feasibility import Comparison
from anatomica.generation.sample import Outcome, Sample
from anatomica.measurement.certificate import not_placed
from anatomica.measurement.goals import Row, constraints_in
from anatomica.mesh.proof import Proof, proof_sentence
from anatomica.report.html import report_html
from anatomica.report.samples import contact_panel, contact_sheet, draw, sample_picture
from anatomica.report.tally import Tally, tally
from anatomica.spec.spec import Spec

MOST_PICTURES = 64
"""Samples with pictures, curves and diagrams in report.html."""
MOST_LISTED, MOST_CHECKS = 256, 3000
"""Samples and rows of the page's table; what is beyond either is only in report.json."""


@dataclass(frozen=True, eq=False)
class Shown:
    """One of the first samples, as page and contact sheet show it; `panel` and `picture` are PNG files."""

    outcome: Outcome
    panel: bytes
    picture: bytes


class Kept(NamedTuple):
    """What is remembered of every sample: its numbers for the totals, and where its JSON lies."""

    tally: Tally
    place: Place


class Report:
    """The report of a run: `add` each sample when it is finished, then `write`.

    A sample that is added again (Ctrl-C came in between) takes its own place. Memory grows by some hundred
    bytes for every sample, and by the first samples' pictures and checks. Pictures are drawn by a thread of
    their own, while the next sample is sampled; what prevents one is raised by the next call.
    """

    def __init__(self, out: Path, spec: Spec | None, resolved: Sequence[Row], about: Anatomy) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.out, self.spec, self.resolved, self.about = out, spec, tuple(resolved), about
        self.listed: dict[int, Outcome] = {}
        self.volumes: dict[int, dict[str, float]] = {}
        self._shown: dict[int, Shown] = {}
        self._painter = ThreadPoolExecutor(1, "pictures")
        self._painting: Future[None] | None = None
        self._pictured: set[int] = set()
        self._kept: dict[int, Kept] = {}
        self._proofs: dict[int, Proof] = {}
        self._unproved: dict[int, str] = {}
        self._spool = Spool(out)

    def add(self, sample: Sample, proof: Proof | None = None) -> None:
        """Draw a sample's pictures, if it is one of the first, and put its numbers on the disk.

        `proof` is that of its surface, if there is one.
        """
        seed, outcome = sample.seed, sample.outcome
        label_map = sample.label_map
        volumes = {t: label_map.volume_ml(t) for t in label_map.present()}
        surface = {} if proof is None else {"surface": proof.to_dict()}
        text = json.dumps(sample_dict(outcome, volumes) | surface)
        self._wait()
        if seed in self._pictured or len(self._pictured) < MOST_PICTURES:
            self._pictured.add(seed)
            self._painting = self._painter.submit(self._paint, sample)
        if self._has_room(outcome):
            pictured = seed in self._pictured
            self.listed[seed] = outcome if pictured else replace(outcome, curves=(), diagrams=())
        if len(self.volumes) < MOST_PICTURES:
            self.volumes[seed] = volumes
        proofs = {} if proof is None else {seed: proof}
        if seed in self.listed:
            self._proofs |= proofs
        self._unproved |= {seed: proof_sentence(p) for seed, p in proofs.items() if not p.holds}
        self._kept[seed] = Kept(tally([outcome], proofs), self._spool.put(text.encode()))

    def _paint(self, sample: Sample) -> None:
        """Draw a sample's pictures and write the large one."""
        views = draw(sample, self.spec, self.resolved, self.about)
        shown = Shown(sample.outcome, contact_panel(views), sample_picture(views))
        write_atomic(self.out / f"sample-{sample.seed:06d}.png", shown.picture)
        self._shown[sample.seed] = shown

    def _wait(self) -> None:
        """Wait for the last sample's pictures; what prevented them is raised once."""
        painting = self._painting
        if painting is not None:
            wait([painting])  # Ctrl-C here leaves it to be waited for again
            self._painting = None
            painting.result()

    def _has_room(self, outcome: Outcome) -> bool:
        """Whether the page lists a sample: all before it are listed, and the table is not too long."""
        if outcome.seed in self.listed or not self.listed:
            return True
        if len(self.listed) < len(self._kept) or len(self.listed) == MOST_LISTED:
            return False
        return sum(len(o.checks) for o in self.listed.values()) + len(outcome.checks) <= MOST_CHECKS

    @property
    def unproved(self) -> dict[int, str]:
        """What is wrong with the surfaces whose proof does not hold, by seed."""
        return self._unproved

    @property
    def total(self) -> Tally:
        """The numbers of all samples together."""
        return Tally.sum(k.tally for k in self._kept.values())

    def json_text(
        self,
        recipe: dict[str, Any],
        comparisons: Sequence[Comparison],
        conflicts: Sequence[str],
        **more: Any,
    ) -> Iterator[str]:
        """report.json in pieces: the recipe, targets against the population, every sample on one line."""
        total = self.total
        head = {
            "schema": "anatomica.report/1",
            **more,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "recipe": recipe,
            "population": [c.to_dict() for c in comparisons],
            "conflicts": list(conflicts),
            "not_placed": not_placed(constraints_in(self.resolved)),
            "met": total.met,
            "valid": total.valid,
        }
        yield json.dumps(head, indent=1).removesuffix("\n}") + ',\n "samples": ['
        for i, kept in enumerate(self._kept.values()):
            yield ("," if i else "") + "\n  " + self._spool.get(kept.place).decode()
        yield "\n ]\n}\n"

    def write(
        self,
        recipe: dict[str, Any],
        comparisons: Sequence[Comparison] = (),
        conflicts: Sequence[str] = (),
    ) -> None:
        """report.json, report.html and contact-sheet.png, each whole or not at all."""
        self._wait()
        pieces = self.json_text(recipe, comparisons, conflicts)
        write_atomic(self.out / "report.json", (piece.encode() for piece in pieces))
        shown = list(self._shown.values())
        write_atomic(self.out / "contact-sheet.png", contact_sheet([s.panel for s in shown]))
        page = report_html(
            list(self.listed.values()),
            constraints_in(self.resolved),
            recipe,
            comparisons,
            [s.picture for s in shown],
            self._proofs,
            total=self.total,
            conflicts=conflicts,
        )
        write_atomic(self.out / "report.html", page.encode())

    def close(self) -> None:
        self._painter.shutdown()
        self._spool.close()


def sample_dict(outcome: Outcome, volumes_ml: dict[str, float]) -> dict[str, Any]:
    """A sample in report.json: seeds, verdicts, checks, volumes and curves."""
    return {
        "seed": outcome.seed,
        "drawn_seed": outcome.drawn_seed,
        "drawn": outcome.drawn,
        "seconds": round(outcome.seconds, 3),
        "cpu_seconds": round(outcome.cpu_seconds, 3),
        "mended_voxels": outcome.mended,
        "met": outcome.met,
        "plausible": outcome.plausible,
        "valid": outcome.valid,
        "checks": [c.to_dict() for c in outcome.checks],
        "outside_ml": outcome.outside_ml,
        "volumes_ml": volumes_ml,
        "unusual": [odd.to_dict() for odd in outcome.unusual],
        "curves": [c.to_dict() for c in outcome.curves],
        "diagrams": [d.to_dict() for d in outcome.diagrams],
    }


def write_report(
    out: Path,
    samples: Iterable[Sample],
    spec: Spec | None,
    resolved: Sequence[Row],
    recipe: dict[str, Any],
    comparisons: Sequence[Comparison] = (),
    proofs: Mapping[int, Proof] = MappingProxyType({}),
) -> None:
    """The whole report of samples that are at hand."""
    with closing(Report(out, spec, resolved, from_card(recipe["model"], "recipe"))) as report:
        for sample in samples:
            report.add(sample, proofs.get(sample.seed))
        report.write(recipe, comparisons)
