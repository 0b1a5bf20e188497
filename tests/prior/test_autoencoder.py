"""Encoder, convolutional decoder and their losses."""

import torch

from anatomica.anatomy.catalogue import anatomy
from anatomica.prior.autoencoder import Autoencoder, Crop, PatchHead, Posterior, one_hot
from anatomica.prior.presets import AutoencoderConfig
from anatomica.prior.training.evaluate import reconstruction, tissue_fractions
from anatomica.prior.training.losses import dice_cross_entropy, hard_dice
from tiny_prior import TINY, ellipsoids


def test_shapes_and_factor():
    model = Autoencoder(4, TINY.autoencoder)
    posterior = model.encode(ellipsoids(2))
    assert posterior.mean.shape == posterior.logvar.shape == (2, 3, 4, 4, 4)
    assert model.decode_conv(posterior.mean).shape == (2, 4, 16, 16, 16)


def test_label_indices_and_one_hot_volumes_encode_alike():
    maps = ellipsoids(2)
    for config in (TINY.autoencoder, AutoencoderConfig(n=16, channels=(8, 16, 16), res_blocks=(0, 1, 1))):
        model = Autoencoder(4, config)
        a, b = model.encode(maps), model.encode(one_hot(maps, 4))
        torch.testing.assert_close(a.mean, b.mean, atol=1e-5, rtol=1e-4)


def test_decoder_patches_land_where_the_encoder_read_them():
    """Moving the latent by one cell moves the decoded volume by `factor` voxels, if position is left out."""
    model = Autoencoder(4, TINY.autoencoder).eval()
    torch.nn.init.zeros_(model.get_parameter("conv_decoder.head.from_position.weight"))
    z = torch.zeros(1, 3, 4, 4, 4)
    z[:, :, 1, 1, 1] = 1.0
    moved = torch.roll(z, (1, 0, 0), (2, 3, 4))
    empty = model.decode_conv(0 * z)
    a, b = model.decode_conv(z) - empty, model.decode_conv(moved) - empty
    torch.testing.assert_close(a[:, :, 4:8], b[:, :, 8:12], atol=1e-5, rtol=1e-4)


def test_a_crop_of_the_latent_decodes_to_a_crop_of_the_volume():
    """Away from the cut the convolutional decoder is local, and `crop` tells it where it is."""
    model = Autoencoder(4, AutoencoderConfig(n=64, channels=(8, 16), res_blocks=(0, 0), stem=2)).eval()
    z = torch.randn(1, 3, 16, 16, 16, generator=torch.Generator().manual_seed(0))
    whole = model.decode_conv(z)[:, :, 16:48, 16:48, 16:48]
    part = model.decode_conv(z[:, :, 4:12, 4:12, 4:12], Crop(torch.full((1, 3), 0.25), 0.5))
    torch.testing.assert_close(
        part[..., 8:24, 8:24, 8:24], whole[..., 8:24, 8:24, 8:24], atol=1e-4, rtol=1e-4
    )


def test_kl_is_the_closed_form():
    mean, logvar = torch.randn(2, 3, 2, 2, 2), torch.randn(2, 3, 2, 2, 2)
    q = torch.distributions.Normal(mean, (0.5 * logvar).exp())
    expected = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).flatten(1).sum(1)
    torch.testing.assert_close(Posterior(mean, logvar).kl(), expected)


def test_dice_of_a_perfect_and_of_a_known_prediction():
    labels = torch.tensor([[0, 0, 1, 2]])
    perfect = 50.0 * torch.nn.functional.one_hot(labels, 4).float()
    dice, entropy = dice_cross_entropy(perfect, labels)
    assert dice.item() < 1e-5
    assert entropy.item() < 1e-5
    # Uniform over four classes: overlap 1/4, predicted 1, size 1 for both tissues present: Dice 2/4 / 2.
    dice, entropy = dice_cross_entropy(torch.zeros(1, 4, 4), labels)
    torch.testing.assert_close(1 - dice, torch.tensor([0.25]))
    torch.testing.assert_close(entropy, torch.tensor([4.0]).log())


def test_hard_dice():
    a, b = torch.tensor([0, 1, 1, 2]), torch.tensor([0, 1, 2, 2])
    scores = hard_dice(a, b, 4)
    torch.testing.assert_close(scores[:3], torch.tensor([1.0, 2 / 3, 2 / 3]))
    assert scores[3].isnan()


def test_fractions_are_shares_of_a_voxel():
    fine = ellipsoids(2, n=32)
    shares = tissue_fractions(fine, 4, 16)
    torch.testing.assert_close(shares.sum(1), torch.ones(2, 16, 16, 16))
    volumes = torch.stack([(fine == c).flatten(1).float().mean(1) for c in range(4)], dim=1)
    torch.testing.assert_close(shares.flatten(2).mean(2), volumes)
    corner = torch.bincount(fine[0, 14:16, 16:18, 12:14].flatten().long(), minlength=4) / 8
    torch.testing.assert_close(shares[0, :, 7, 8, 6], corner)
    torch.testing.assert_close(tissue_fractions(fine, 4, 32).argmax(1), fine.long())


def test_a_model_that_says_background_everywhere_is_still_summed_up():
    model = Autoencoder(4, TINY.autoencoder)
    assert isinstance(model.conv_decoder.head, PatchHead)
    for layer in (model.conv_decoder.head.mlp[-1], model.field.mlp[-1]):
        assert isinstance(layer, torch.nn.Linear)
        torch.nn.init.zeros_(layer.weight)
        layer.bias.data = torch.nn.functional.one_hot(torch.arange(len(layer.bias)) % 4, 4)[:, 0].float()
    result = reconstruction(model, ellipsoids(2), anatomy("coronary").table)
    assert result.field == [0.0, 0.0, 0.0]
    assert "agreement Dice 0.0000" in result.summary()
