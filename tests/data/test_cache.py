"""The cache and the one Dataset that training reads."""

import json

import numpy as np
import pytest
import torch

import trees
from anatomica.data import build_phantom_cache, open_cache, split_of
from anatomica.data.dataset import LabelMapDataset
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError

SEED, COUNT = 10, 6  # patients 10 to 15: one of them validates


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return build_phantom_cache("coronary", COUNT, tmp_path_factory.mktemp("cache"), n=32, seed=SEED)


def test_phantoms_in_a_cache_are_the_phantoms(cache):
    assert (cache.anatomy.name, cache.n, cache.edge_mm) == ("coronary", 32, 12.8)
    assert len(cache.cases) == COUNT
    assert cache.excluded == ()
    for seed, case in enumerate(cache.cases[:3], start=SEED):
        made = phantom("coronary", seed, 32)
        assert case.id == f"coronary-{seed:06d}"
        loaded = cache.load(case)
        np.testing.assert_array_equal(loaded.array, made.label_map.array)
        np.testing.assert_allclose(loaded.affine, made.label_map.affine)
        assert case.present == made.label_map.present()
        truth = json.loads((cache.folder / "cases" / f"{case.id}.json").read_text())
        assert truth == json.loads(json.dumps(made.truth.as_json()))


def test_more_phantoms_extend_the_cache(cache, tmp_path):
    build_phantom_cache("coronary", 2, tmp_path / "grown", n=32, seed=SEED)
    build_phantom_cache("coronary", COUNT, tmp_path / "grown", n=32, seed=SEED)
    assert trees.tree_bytes(tmp_path / "grown") == trees.tree_bytes(cache.folder)


def test_dataset_gives_channel_indices(cache):
    train, validation = (LabelMapDataset(cache.folder, s) for s in ("train", "validation"))
    assert len(train) + len(validation) == COUNT
    assert {c.split for c in train.cases} == {"train"}
    item = train[0]
    assert item.dtype == torch.uint8
    assert item.shape == (32, 32, 32)
    np.testing.assert_array_equal(item.numpy(), cache.load(train.cases[0]).array)
    assert train.table.names == ("background", "Lu", "Ca", "Ve")
    assert train.edge_mm == 12.8
    everything = train.load_all()
    assert everything.shape == (len(train), 32, 32, 32)
    assert torch.equal(everything[-1], train[len(train) - 1])


def test_dataset_at_another_resolution(cache):
    half = LabelMapDataset(cache.folder, "train", n=16)
    assert half[0].shape == (16, 16, 16)
    fine = LabelMapDataset(cache.folder, "train")[0]
    assert float((half[0] > 0).float().mean()) == pytest.approx(float((fine > 0).float().mean()), rel=0.1)


def test_split_is_four_to_one_and_does_not_move():
    names = [f"s{i:04d}" for i in range(4000)]
    share = sum(split_of(n) == "train" for n in names) / len(names)
    assert share == pytest.approx(0.8, abs=0.02)
    # Written down once: a change would mix training and validation patients of caches already made.
    assert "".join(split_of(name)[0] for name in names[:12]) == "tvvtvtttttvt"


def test_what_is_not_a_cache_is_refused(tmp_path, cache):
    with pytest.raises(AnatomicaError, match=r"no cache here \(no manifest\.json\)$"):
        open_cache(tmp_path)
    manifest = tmp_path / "manifest.json"
    for content, match in (
        ("{", "not a cache manifest"),
        ("[]", "not a cache manifest"),
        ("{}", "not a cache manifest"),
        ('{"format": 99}', "cache format 99"),
        ('{"format": 1, "anatomy": "renal"}', "unknown anatomy 'renal'"),
        ('{"format": 1, "anatomy": "spinal", "labels": ["background"]}', "are not those of the spinal"),
    ):
        manifest.write_text(content)
        with pytest.raises(AnatomicaError, match=match):
            open_cache(tmp_path)


def test_a_damaged_case_is_named(tmp_path):
    cache = build_phantom_cache("coronary", 1, tmp_path / "c", n=32)
    path = cache.path(cache.cases[0])
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(AnatomicaError, match=r"coronary-000000\.nii\.gz: damaged cache file"):
        cache.load(cache.cases[0])


def test_whatever_is_damaged_is_made_again(tmp_path):
    """Every file of a cache, changed, cut and gone: the next run of the same command gives the same cache."""
    build_phantom_cache("coronary", 2, tmp_path / "c", n=32)
    whole = trees.tree_bytes(tmp_path / "c")
    for name in whole:
        path = tmp_path / "c" / name
        if path.name == "settings.json":
            continue  # says how the cache is made: another one is another cache
        data = path.read_bytes()
        middle = len(data) // 2
        for bad in (data[:middle], data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :], None):
            path.unlink() if bad is None else path.write_bytes(bad)
            build_phantom_cache("coronary", 2, tmp_path / "c", n=32)
            assert trees.tree_bytes(tmp_path / "c") == whole


def test_another_file_of_the_right_form_is_not_taken_for_the_case(tmp_path):
    cache = build_phantom_cache("coronary", 2, tmp_path / "c", n=32)
    first, second = (cache.path(case) for case in cache.cases)
    first.write_bytes(second.read_bytes())
    with pytest.raises(AnatomicaError, match="its checksum is not that of its record"):
        cache.load(cache.cases[0])


def test_caches_of_before_checksums_are_read(tmp_path):
    cache = build_phantom_cache("coronary", 1, tmp_path / "c", n=32)
    manifest = tmp_path / "c" / "manifest.json"
    content = json.loads(manifest.read_text())
    del content["checksum"]
    for case in content["cases"]:
        del case["sha256"], case["truth_sha256"]
    manifest.write_text(json.dumps(content))
    old = open_cache(tmp_path / "c")
    assert np.array_equal(old.load(old.cases[0]).array, cache.load(cache.cases[0]).array)


def test_a_split_without_cases_is_refused(tmp_path):
    build_phantom_cache("coronary", 1, tmp_path / "c", n=32)
    other = "validation" if split_of("coronary-000000") == "train" else "train"
    with pytest.raises(AnatomicaError, match=f"no {other} case among 1 cases"):
        LabelMapDataset(tmp_path / "c", other)
    with pytest.raises(AnatomicaError, match="at least 1, not 0"):
        build_phantom_cache("coronary", 0, tmp_path / "d")
