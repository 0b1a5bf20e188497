"""Under the tables of control: quality of every row on both grids, and what each row had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anatomica.evaluate.experiments.measures import share
from anatomica.evaluate.experiments.quality import Grids, floors, implausible_patients
from anatomica.evaluate.experiments.rows import TUNED_ON, WEIGHTS
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import markdown, shown
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.evaluate.metrics.quality import Quality
from anatomica.generation.choose import GUIDED_TRIES
from anatomica.generation.options import Options
from anatomica.prior.sampler import SamplingConfig

HEADER = ("Task", "Approach", "n", "implausible %", "at 2n", "FMD", "of uncond.", "at 2n", "of uncond.")
HEADER += ("1-NNA", "at 2n", "presence off by %", "at 2n")


def quality_section(runner: Runner, done: Sequence[Finished], found: Mapping[str, Grids]) -> str:
    """FMD, 1-NNA, implausible samples and presence of tissues at n and 2n; real against real at the end."""
    rows = [_row(f, found[f.cell.name]) for f in done]
    for (anatomy, count), q in floors(runner.lab, done).items():
        odd = shown(implausible_patients(runner.lab, anatomy))
        numbers = (shown(q.fmd), "-", "-", "-", shown(q.nna), "-", f"{100 * q.presence:.1f}", "-")
        rows.append([f"real, {anatomy}", "real patients", str(count), odd, "-", *numbers])
    return (
        "\n## Quality\n\n"
        + markdown(HEADER, rows)
        + "\nAgainst held-out patients that were not targets, at their own n: FMD and 1-NNA (0.5 is ideal), "
        "and by how much the share of cases that have a tissue differs, a mean over tissues. At 2n: the same "
        "latents decoded on a grid twice as fine, without repair. Of uncond.: over the FMD of as many "
        "unconditional samples, because FMD grows as sets shrink. Real patients: training patients against "
        "the same held-out ones, and the share of the target patients that the rules of plausibility call "
        "implausible.\n\n"
    )


def _row(f: Finished, g: Grids) -> list[str]:
    odd = [_flipped(f, key) for key in ("plausible", "plausible_2n")]
    fmd = [*_distance(g.n, g.free), *_distance(g.twice, g.free_twice)]
    nna = ["-" if q is None else shown(q.nna) for q in (g.n, g.twice)]
    presence = ["-" if q is None else f"{100 * q.presence:.1f}" for q in (g.n, g.twice)]
    return [f.cell.task, f.cell.method.title, str(len(f.keys)), *odd, *fmd, *nna, *presence]


def _flipped(f: Finished, key: str) -> str:
    """The percentage of which `key` is not true."""
    value, low, high = share([f], key)
    return shown(Interval(100 - value, 100 - high, 100 - low))


def _distance(q: Quality | None, free: Quality | None) -> tuple[str, str]:
    if q is None:
        return "-", "-"
    return shown(q.fmd), "-" if free is None else f"{q.fmd.value / free.fmd.value:.2f}"


def standing_json(f: Finished, g: Grids) -> dict[str, Any]:
    """A row's judged shares and quality, for the summary."""
    keys = ("met", "met_2n", "plausible", "plausible_2n", "valid")
    twice = None if g.twice is None else g.twice.as_json()
    return {key: list(share([f], key)) for key in keys} | {"quality": g.n.as_json(), "quality_2n": twice}


def what_rows_had(runner: Runner, done: Sequence[Finished]) -> str:
    """Sampler, guidance, weights, polish and candidates of every row."""
    rows = []
    for key in dict.fromkeys(f.cell.method.key for f in done):
        mine = [f for f in done if f.cell.method.key == key]
        method, guidance = mine[0].cell.method, mine[0].cell.method.guidance
        how = Options(**method.how(runner.profile.steps))
        samplers: dict[str, list[str]] = {}
        for anatomy in dict.fromkeys(f.cell.spec.anatomy for f in mine):
            config = how.sampling(method.sampled(runner.lab.model(anatomy)))
            samplers.setdefault(sampler_words(config), []).append(anatomy)
        told = [words + (f" ({', '.join(a)})" if len(samplers) > 1 else "") for words, a in samplers.items()]
        weights = "-"
        if guidance is not None and guidance.solver == "gradient":
            tuned = [f"{f.cell.task} x {WEIGHTS[f.cell.task]:g}" for f in mine if method.tuned]
            weights = ", ".join(tuned) or "the paper's"
        solver = method.conditioning or "none"
        if guidance is not None:
            solver = {"gradient": f"the paper's, {guidance.variant}", "none": "none"}.get(
                guidance.solver, "Gauss-Newton"
            )
        polish = f"up to {guidance.polish_steps} steps" if guidance and guidance.polish_steps else "no"
        tries = f"up to {GUIDED_TRIES}" if method.tries is None else str(method.tries)
        rows.append([method.title, f"`{key}`", "; ".join(told), solver, weights, polish, tries])
    columns = any(runner.lab.model(f.cell.spec.anatomy).autoencoder.config.column for f in done)
    scouts = "Guided spines begin in a scout and take only the steps below noise 6. " if columns else ""
    chosen = TUNED_ON if any(f.cell.method.tuned for f in done) else ""
    header = ("Approach", "--only", "sampler", "guidance", "weights", "polish", "candidates")
    return (
        "\n## What each row had\n\n"
        + markdown(header, rows)
        + "\nAll rows have the repair of `generate`: of voxels, and where it would change some, up to ten "
        "Newton steps of the latent, which hold the task's targets if the row is guided (Anatomica-V: of "
        "voxels only). All are certified on the task's own grid. The paper's update is guided on points as "
        f"dense for the model as the paper's for 128^3. {scouts}{chosen}\n\n"
    )


def sampler_words(config: SamplingConfig) -> str:
    """A sampler as a table tells it.

    >>> sampler_words(SamplingConfig("multistep", 25, rho=7.0, eta=2.0))
    '25 multistep steps, noise 80 to 0.01, rho 7, eta 2'
    """
    words = f"{config.steps} {config.method} steps, noise {config.sigma_max:g} to {config.sigma_min:g}, "
    words += f"rho {config.rho:g}"
    if config.method == "multistep":
        words += f", eta {config.eta:g}"
    if config.method == "stochastic" and config.s_churn:
        words += f", churn {config.s_churn:g} from noise {config.s_min:g} to {config.s_max:g}"
        words += f", its noise x {config.s_noise:g}"
    return words
