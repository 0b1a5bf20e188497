"""How often the proof of a mesh holds: surfaces of many generated patients, tetrahedra of some of them.

Every patient's numbers are kept under a hash of all that decides them, code and weights included, so that a
run that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from anatomica.evaluate.bench.mesh_proof_tables import line, markdown, summary, tet_line
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.evaluate.experiments.identity import code_version, content_hash
from anatomica.evaluate.experiments.page import read_result
from anatomica.evaluate.experiments.store import load_numbers, save_numbers
from anatomica.evaluate.provenance import PICTURES, commit
from anatomica.generation.draw import draw
from anatomica.generation.options import Options
from anatomica.generation.sample import Sample
from anatomica.mesh import Proof, Surface, prove, surface_of, surface_of_latent
from anatomica.mesh.tetproof import prove_tetrahedra
from anatomica.mesh.tetrahedra import TetOptions, tetrahedralize
from anatomica.prior.zoo import Model, load_model

MODULE = "evaluate.bench.mesh_proof"
CACHE = Path("out/mesh-proof")
WAYS = ("field", "voxels")
"""Vertices on the field's own border, or from the voxels only."""
FILLED = "tetrahedra"
TOLD = 10
"""Patients after which the count so far is told."""


def run(
    out: Path,
    models: Sequence[str],
    samples: int = 50,
    n: int = 128,
    fill: int = 0,
    first: int = 0,
    cache: Path = CACHE,
    tell: Tell = lambda _: None,
) -> dict[str, Any]:
    """Prove the surfaces of unconditional samples, tell each that fails, write out/mesh-proof.json and .md.

    The first `fill` samples of each anatomy are filled with tetrahedra as well, with the default options.
    Other anatomies of an earlier run with the same numbers stay in the file, with the commit they are of.
    """
    result: dict[str, Any] = {"samples": samples, "first_seed": first, "n": n, "surfaces": {}, "filled": {}}
    loaded = [load_model(name) for name in models]
    for model in loaded:
        rows: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for count, found in enumerate(proved(model, range(first, first + samples), n, cache), start=1):
            for way in WAYS:
                rows[way].append(found[way])
                if not found[way]["holds"]:
                    told = f"{model.anatomy} seed {found[way]['seed']}, {way}: does not hold"
                    tell(f"{told}: {found[way]['reasons']}")
            if count % TOLD == 0 and count < samples:
                held = [sum(row["holds"] for row in rows[way]) for way in WAYS]
                tell(f"{model.anatomy}: {count} of {samples} patients, proofs hold for {held[0]}, {held[1]}")
        result["surfaces"][model.anatomy] = {way: summary(rows[way]) for way in WAYS}
        for way in WAYS:
            tell(f"{model.anatomy}, {way}: {line(result['surfaces'][model.anatomy][way])}")
    for model in loaded if fill else ():
        result["filled"][model.anatomy] = []
        for row in filled(model, range(first, first + fill), n, cache):
            result["filled"][model.anatomy].append(row)
            tell(f"{model.anatomy} seed {row['seed']}: {tet_line(row)}")
    weights = {model.anatomy: model.hash for model in loaded}
    result["commits"] = dict.fromkeys(weights, commit())
    result, weights = with_others(result, weights, read_result(out / "mesh-proof.json"))
    return write_bench(out, "mesh-proof", result, markdown(result), weights, MODULE)


def with_others(
    result: dict[str, Any], weights: dict[str, str], before: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The result and its weights with the anatomies of an earlier one that were not made again."""
    if before is None or any(before.get(key) != result[key] for key in ("samples", "first_seed", "n")):
        return result, weights
    about = before["provenance"]
    commits = before.get("commits") or dict.fromkeys(before["surfaces"], about["commit"])
    joined = {key: before[key] | result[key] for key in ("surfaces", "filled")}
    return result | joined | {"commits": commits | result["commits"]}, about["weights"] | weights


def proved(model: Model, seeds: Sequence[int], n: int, cache: Path) -> Iterator[dict[str, Any]]:
    """Of each seed's sample what is counted of its surfaces, by way; kept as soon as it is known."""
    known = {seed: {way: load_numbers(kept(cache, model, seed, n, way)) for way in WAYS} for seed in seeds}
    missing = [seed for seed in seeds if None in known[seed].values()]
    drawn = draw(model, missing, options=Options(resolution=n))
    for seed in seeds:
        if seed in missing:
            sample = next(drawn)
            for way in WAYS:
                known[seed][way] = row = one(sample, model, way)
                save_numbers(kept(cache, model, seed, n, way), row)
        yield known[seed]


def filled(model: Model, seeds: Sequence[int], n: int, cache: Path) -> Iterator[dict[str, Any]]:
    """The proofs of tetrahedra in the surfaces on the field's border; kept as soon as they are known."""
    for seed in seeds:
        row = load_numbers(kept(cache, model, seed, n, FILLED))
        if row is None:
            (sample,) = draw(model, [seed], options=Options(resolution=n))
            surface = surface_of_latent(sample.label_map, model, sample.latent)
            row = fill_one(surface) | {"seed": seed}
            save_numbers(kept(cache, model, seed, n, FILLED), row)
        yield row


def kept(cache: Path, model: Model, seed: int, n: int, what: str) -> Path:
    """Where a sample's numbers are kept, named after all that decides them."""
    code = code_version(MODULE, (*PICTURES, "evaluate.bench.mesh_proof_tables"))
    name = content_hash([model.hash, seed, n, what, code])
    return cache / model.anatomy / f"{what}-{seed:06d}-{name}.json"


def surface_by(way: str, sample: Sample, model: Model) -> Surface:
    """A sample's surface in one of the WAYS."""
    if way == "field":
        return surface_of_latent(sample.label_map, model, sample.latent)
    return surface_of(sample.label_map)


def one(sample: Sample, model: Model, way: str) -> dict[str, Any]:
    """What is counted of one surface, as plain data."""
    began = process_time()
    surface = surface_by(way, sample, model)
    seconds = process_time() - began
    proof = prove(surface, sample.label_map)
    return {
        "seed": sample.seed,
        "seconds": seconds,
        "holds": proof.holds,
        "reasons": reasons(proof),
        "closed": all(t.open_edges == 0 for t in proof.tissues),
        "betti": all(t.betti == t.betti_voxels for t in proof.tissues),
        "two_owners": proof.one_sided == 0,
        "turned": proof.turned,
        "crossings": proof.crossings,
        "manifold": all(t.manifold for t in proof.tissues),
        "tissues": {t.name: {"ml": t.voxels_ml, "error": t.volume_error} for t in proof.tissues},
        "angle": proof.smallest_angle_deg,
        "triangles": proof.triangles,
    }


def reasons(proof: Proof) -> str:
    """What of a proof does not hold, in words."""
    found = [f"{t.name} has {t.open_edges} open edges" for t in proof.tissues if t.open_edges]
    found += [
        f"{t.name} has Betti numbers {t.betti}, its voxels {t.betti_voxels}"
        for t in proof.tissues
        if not t.open_edges and t.betti != t.betti_voxels
    ]
    found += [
        f"{t.name} is {100 * t.volume_error:.2f} % off its {t.voxels_ml:.3g} mL"
        for t in proof.tissues
        if t.volume_error > t.allowed_error
    ]
    counts = {"triangles without two owners": proof.one_sided, "turned over": proof.turned}
    counts["crossing pairs"] = proof.crossings
    return "; ".join([*found, *(f"{count} {what}" for what, count in counts.items() if count)])


def fill_one(surface: Surface, options: TetOptions = TetOptions()) -> dict[str, Any]:
    """The proof of the tetrahedra of one surface, as plain data."""
    mesh, made = tetrahedralize(surface, options)
    return prove_tetrahedra(mesh, surface, made).to_dict()
