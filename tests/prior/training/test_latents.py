"""Latents of maps on a finer grid than the autoencoder's."""

import torch

from anatomica.data.dataset import LabelMapDataset
from anatomica.data.sources.phantoms import build_phantom_cache
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.training.evaluate import tissue_fractions
from anatomica.prior.training.latents import cached_latents
from anatomica.prior.training.parallel import join_team
from tiny_prior import TINY


def test_finer_maps_are_encoded_from_fractions(tmp_path):
    """The latents are those of each tissue's share of a voxel, and are kept for the same maps only."""
    build_phantom_cache("coronary", 6, tmp_path / "cache", TINY.autoencoder.n * 2)
    fine = LabelMapDataset(tmp_path / "cache", "train")
    autoencoder = Autoencoder(len(fine.table), TINY.autoencoder).eval()
    run, team, training = tmp_path / "run", join_team("cpu"), TINY.train_denoiser
    latents, scaler = cached_latents(fine, autoencoder, run, training, 0, team)
    classes = autoencoder.classes
    shares = tissue_fractions(fine[0][None], classes, TINY.autoencoder.n)
    assert torch.allclose(latents[0], autoencoder.encode(shares).mean[0], atol=1e-5)
    assert torch.allclose(scaler.standardise(latents).mean(dim=(0, 2, 3, 4)), torch.zeros(3), atol=1e-3)
    coarse = LabelMapDataset(tmp_path / "cache", "train", TINY.autoencoder.n).load_all()
    other, _ = cached_latents(coarse, autoencoder, run, training, 0, team)
    assert not torch.equal(other[0], latents[0])
