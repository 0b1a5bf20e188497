"""Damaged things that a later run trusts: models, recipes, latents, caches, evaluations and cohorts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import torch

import fuzz.mutators as mutators
from anatomica.cohort.patient import Patient
from anatomica.cohort.plan import Maker, Plan, make_plan, read_plan
from anatomica.cohort.spec import parse_spec
from anatomica.cohort.store import Store
from anatomica.data import build_phantom_cache, open_cache
from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.store import load_arrays, load_numbers, save_arrays, save_numbers
from anatomica.files import CHECKSUM, sealed
from anatomica.generation.draw import generate
from anatomica.generation.latent import read_latent
from anatomica.generation.options import Options
from anatomica.generation.recipe import read_recipe
from anatomica.measurement.goals import constraints_in
from anatomica.measurement.possible import refuse_impossible
from anatomica.prior.card import card_numbers, read_card
from anatomica.prior.zoo import load_model
from fuzz.made import CORONARY, CORONARY_FRAME, Inputs, Refusing, Wrong, files, put, weights


def model_bytes(made: Inputs, rng: random.Random) -> bool:
    """A model folder with one damaged file: refused, or the same model."""
    folder = made.folder / "model"
    name = rng.choice(sorted(made.model))
    put(folder, made.model | {name: mutators.damage(made.model[name], rng)})
    with Refusing("model") as answer:
        if not torch.equal(weights(load_model(folder)), made.weights):
            raise Wrong(f"another model after {name} was damaged")
    return answer.refused


def model_card(made: Inputs, rng: random.Random) -> bool:
    """A card with odd values and a checksum that fits: refused, or a model that draws."""
    folder = made.folder / "model"
    card = mutators.damage_json(json.loads(made.model["card.json"]), rng)
    if isinstance(card, dict) and rng.random() < 0.9:
        card = sealed(card)
    put(folder, made.model | {"card.json": mutators.json_text(card).encode()})
    with Refusing("model") as answer:
        card_numbers(read_card(folder))
        model = load_model(folder)
        if model.edge_mm != CORONARY.edge_mm:
            raise Wrong("the cube of another anatomy")
        if rng.random() < 0.1:
            generate(model, seeds=[0], options=Options(steps=1, tries=1, resolution=8))
    return answer.refused


def recipe_values(made: Inputs, rng: random.Random) -> bool:
    """A report.json with odd values: refused by name, or one whose targets are possible."""
    content = mutators.damage_json(made.report, rng)
    if isinstance(content, dict) and isinstance(content.get("recipe"), dict) and rng.random() < 0.8:
        content["recipe"].pop(CHECKSUM, None)
    path = made.folder / "report.json"
    path.write_text(mutators.json_text(content))
    with Refusing("report.json") as answer:
        found = read_recipe(path)
        try:
            refuse_impossible(constraints_in(found.resolved), CORONARY_FRAME)
        except AnatomicaError as error:
            if "constraint" not in str(error):
                raise
    return answer.refused


def recipe_bytes(made: Inputs, rng: random.Random) -> bool:
    """A report.json with damaged bytes: refused, or the same recipe."""
    data = json.dumps(made.report, indent=1).encode()
    path = made.folder / "report.json"
    path.write_bytes(mutators.damage(data, rng))
    with Refusing("report.json") as answer:
        found, whole = read_recipe(path), made.report["recipe"]
        if found.arguments.model_dump(mode="json") != whole["arguments"]:
            raise Wrong("other arguments")
        if found.model_hash != whole["model"]["hash"]:
            raise Wrong("another model")
    return answer.refused


def latent_bytes(made: Inputs, rng: random.Random) -> bool:
    """A sample's latent with damaged bytes: refused, or the same numbers."""
    folder = made.folder / "sample"
    name = "a_latent.safetensors"
    put(folder, made.sample)
    whole = read_latent(folder / "a.nii.gz")
    assert whole is not None
    (folder / name).write_bytes(mutators.damage(made.sample[name], rng))
    with Refusing(name) as answer:
        found = read_latent(folder / "a.nii.gz")
        if found is None or not torch.equal(found.values, whole.values) or found[1:] != whole[1:]:
            raise Wrong("another latent than was written")
    return answer.refused


def cache_bytes(made: Inputs, rng: random.Random) -> bool:
    """A cache with one damaged file: refused by name, or the same cases; preparing it again mends it."""
    folder = made.folder / "cache"
    name = rng.choice(sorted(made.cache))
    put(folder, made.cache | {name: mutators.damage(made.cache[name], rng)})
    with Refusing("cache") as answer:
        cache = open_cache(folder)
        if {c.id for c in cache.cases} != set(made.cases):
            raise Wrong("other cases")
        for case in cache.cases:
            if not np.array_equal(cache.load(case).array, made.cases[case.id]):
                raise Wrong("another case than was written")
    if rng.random() < 0.02 and name != "settings.json":
        build_phantom_cache("coronary", 3, folder, n=32)
        if files(folder) != made.cache:
            raise Wrong(f"{name} was not mended")
    return answer.refused


def cache_values(made: Inputs, rng: random.Random) -> bool:
    """A manifest with odd values and a checksum that fits."""
    folder = made.folder / "cache"
    content = mutators.damage_json(json.loads(made.cache["manifest.json"]), rng)
    if isinstance(content, dict) and rng.random() < 0.9:
        content = sealed(content)
    put(folder, made.cache | {"manifest.json": mutators.json_text(content).encode()})
    with Refusing("cache") as answer:
        cache = open_cache(folder)
        for case in cache.cases:
            cache.load(case)
    return answer.refused


def store_arrays(made: Inputs, rng: random.Random) -> bool:
    """Arrays of an evaluation: missing, or as they were."""
    arrays = {"labels": made.label_map.array, "seconds": np.array(1.5)}
    path = made.folder / "entry.npz"
    save_arrays(path, **arrays)
    path.write_bytes(mutators.damage(path.read_bytes(), rng))
    found = load_arrays(path)
    if found is not None and not (
        found.keys() == arrays.keys() and all(np.array_equal(found[k], arrays[k]) for k in arrays)
    ):
        raise Wrong("another entry than was written")
    return found is None


def store_numbers(made: Inputs, rng: random.Random) -> bool:
    """Numbers of an evaluation: missing, or as they were."""
    numbers, path = {"a": [1.5, 2], "b": {"c": None}}, made.folder / "entry.json"
    save_numbers(path, numbers)
    path.write_bytes(mutators.damage(path.read_bytes(), rng))
    again = load_numbers(path)
    if again is not None and again != numbers:
        raise Wrong("other numbers than were written")
    return again is None


COHORT = "{name: a, anatomy: aortic, size: 3, targets: {ao.tortuosity: {uniform: [1.05, 1.35]}}}"


def cohort_plan(made: Inputs, rng: random.Random) -> bool:
    """A cohort's plan.json with damaged bytes, or odd values and a checksum that fits."""
    folder = made.folder / "drawn"
    plan = make_plan(parse_spec(COHORT), Maker("", ""))
    plan.save(folder)
    path = folder / "plan.json"
    whole = rng.random() < 0.5
    if whole:
        path.write_bytes(mutators.damage(path.read_bytes(), rng))
    else:
        content = mutators.damage_json(json.loads(path.read_text()), rng)
        path.write_text(mutators.json_text(sealed(content) if isinstance(content, dict) else content))
    with Refusing("plan.json") as answer:
        found = read_plan(folder)
        if whole and not _same(found, plan):
            raise Wrong("another plan than was written")
    return answer.refused


def _same(a: Plan, b: Plan) -> bool:
    return (a.spec, a.size, a.keys, a.distributions) == (b.spec, b.size, b.keys, b.distributions)


def cohort_record(made: Inputs, rng: random.Random) -> bool:
    """A patient's record in a cohort's store: refused, or as it was."""
    store, key = Store(made.folder / "drawn"), "ab" + 30 * "0"
    record = {"outcome": "kept", "index": 0, "quantities": {"ao.tortuosity": 1.25}}
    store.put(key, Patient(record, None))
    path: Path = store.record_path(key)
    path.write_bytes(mutators.damage(path.read_bytes(), rng))
    with Refusing(path.name) as answer:
        if store.record(key) != record:
            raise Wrong("another record than was written")
    return answer.refused
