"""The rows of the tables of control: ours and its rivals, each with all that ours gets.

Every row is judged as `generate` judges: repaired, certified on the same grid, one candidate per sample. Each
way of sampling is there with and without the polish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anatomica.evaluate.experiments.plan import Cell, Method, PaperGuidance, Profile, reweighted
from anatomica.guidance.solver import POLISH, Guidance
from anatomica.prior.presets import PRESETS
from anatomica.spec.spec import Spec
from anatomica.spec.tasks import task

UNCONDITIONAL = Method("unconditional", "Uncond.", judged=True)
POLISHED = Method("polish", "Uncond. + polish", Guidance(solver="none", polish=POLISH), judged=True)
EXPLICIT = Method("explicit", "Explicit", conditioning="explicit", judged=True)
IMPLICIT = Method("implicit", "Implicit", conditioning="implicit", judged=True)
PAPER = Method(
    "paper",
    "paper's update",
    PaperGuidance(),
    slow=True,
    judged=True,
    sampling=PRESETS["paper"].sampling,
)
PAPER_POLISHED = replace(
    PAPER, key="paper-polish", title="paper's update + polish", guidance=PaperGuidance(polish=POLISH)
)
TUNED = replace(PAPER, key="paper-tuned", title="tuned paper's update", tuned=True)
TUNED_POLISHED = replace(
    PAPER_POLISHED, key="paper-tuned-polish", title="tuned paper's update + polish", tuned=True
)
PAPER_V = replace(
    PAPER,
    key="paper-v",
    title="paper's update (Anatomica-V)",
    guidance=PaperGuidance(variant="V"),
    decoder="conv",
)
BARE = Method("ours-no-polish", "ours without polish", Guidance(polish=0), judged=True)
OURS = Method("ours", "ours", Guidance(), judged=True)

ROWS = (UNCONDITIONAL, POLISHED, PAPER, PAPER_POLISHED, TUNED, TUNED_POLISHED, BARE, OURS)
"""Of every table."""

WEIGHTS = {"right-ventricle": 0.1, "mitral-valve": 0.1, "aortic-trunk": 1.0, "myocardium-wall": 0.1}
"""Factor on the paper's weights, by task; tasks that are not named are not tuned yet. The least
`paper_weights.score` of results/guidance-weight.json. `anatomica evaluate paper-weights --targets development
--profile here` tunes again, in the sampler of these rows and for every task, and says what to change."""
TUNED_ON = (
    "Tuned weights are the best of 0.01, 0.1, 1 and 10 times the paper's for the four geometric tasks, 16 "
    "samples each in 12 multistep steps (`anatomica evaluate guidance-weight`), on targets of all held-out "
    "patients before these were split: test patients are among them. Other tasks are not tuned yet and "
    "have no such row."
)
"""To be changed with `WEIGHTS`."""


def weighted(spec: Spec, factor: float) -> Spec:
    """The spec with all of the paper's weights multiplied."""
    return reweighted(spec, geometric=factor, topological=factor)


def cells_of(name: str, methods: Sequence[Method], profile: Profile, sweep: bool = False) -> list[Cell]:
    """A task's cells, one for each method; without the tuned ones where nothing was tuned."""
    spec = task(name)
    return [
        Cell(
            name,
            method,
            weighted(spec, WEIGHTS[name]) if method.tuned else spec,
            spec,
            profile.count(method, sweep),
        )
        for method in methods
        if name in WEIGHTS or not method.tuned
    ]
