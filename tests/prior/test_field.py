"""The neural field: coordinates, chunked decoding, gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from anatomica.prior.field import Field, decode_labels, decode_on_demand, slice_trilinear
from anatomica.prior.presets import FieldConfig
from anatomica.prior.sampler import sample
from anatomica.prior.zoo import load_model


def field(split: int = 2) -> Field:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Field(3, 5, FieldConfig(channels=8, hidden=16, split=split))


def latent(b: int = 2) -> torch.Tensor:
    return torch.randn(b, 3, 4, 4, 4, generator=torch.Generator().manual_seed(1))


def centres(n: int) -> torch.Tensor:
    line = (torch.arange(n) + 0.5) / n
    return torch.stack(torch.meshgrid(line, line, line, indexing="ij"), -1).view(1, -1, 3)


def test_slice_equals_grid_sample_in_array_axis_order():
    """Against torch's own sampler: reversed axes, [-1, 1], align_corners=False, border padding."""
    features = torch.randn(2, 7, 4, 5, 6)
    points = torch.rand(2, 50, 3)
    ours = slice_trilinear(features.permute(0, 2, 3, 4, 1), points)
    grid = (2 * points.flip(-1) - 1)[:, :, None, None]
    theirs = F.grid_sample(features, grid, padding_mode="border", align_corners=False)[..., 0, 0]
    torch.testing.assert_close(ours, theirs.transpose(1, 2), atol=1e-5, rtol=1e-5)


def test_slice_reproduces_a_linear_ramp():
    """Interpolation of x is x wherever it lies between cell centres."""
    line = (torch.arange(4) + 0.5) / 4
    ramp = torch.stack(torch.meshgrid(line, line, line, indexing="ij"), -1)[None]
    points = 0.2 + 0.6 * torch.rand(1, 40, 3)
    torch.testing.assert_close(slice_trilinear(ramp, points), points, atol=1e-5, rtol=1e-5)


def test_decoding_a_grid_equals_decoding_its_points():
    """8, 12 and 7 are decoded whole, 16 and 32 from coarser grids; random labels vary nearly everywhere."""
    model, z = field(), latent()
    for n in (8, 12, 7, 16, 32):
        points = model(z, centres(n).expand(2, -1, -1)).view(2, n, n, n, 5)
        assert (decode_labels(model, z, n) == points.argmax(-1)).float().mean() > 0.999


@torch.inference_mode()
def test_the_inside_of_tissues_is_not_decoded_on_the_finest_grid(monkeypatch: pytest.MonkeyPatch):
    """A shipped aorta at 128^3: the labels of all points, from less than a tenth of them."""
    aorta = load_model("aortic")
    model, z = aorta.autoencoder.field, sample(aorta.denoiser, aorta.latent_shape, [0], aorta.sampling)
    z = aorta.scaler.restore(z)
    points = centres(128).split(65536, dim=1)
    whole = torch.cat([model(z, p).argmax(-1)[0] for p in points]).view(128, 128, 128)
    looked, at = [], model.at
    monkeypatch.setattr(model, "at", lambda f, p: looked.append(p.shape[1]) or at(f, p))
    labels = decode_labels(model, z, 128)[0]
    assert sum(looked) < 0.1 * 128**3
    assert int((labels != whole).sum()) <= 20


def test_parts_with_one_matrix_are_the_paper_s_field_between_nearest_cells():
    """A split field whose parts share a matrix has the unsplit one's features, each in all of its parts."""
    plain, split, z = field(split=1), field(split=2), latent()
    split.bottleneck.load_state_dict(plain.bottleneck.state_dict())
    with torch.no_grad():
        split.from_features.weight.copy_(plain.from_features.weight.repeat(8, 1))
    features = split.prepare(z)
    assert features.shape == (2, 8, 8, 8, 16)
    for axis in (1, 2, 3):
        torch.testing.assert_close(
            features.unflatten(axis, (4, 2)).select(axis + 1, 0),
            features.unflatten(axis, (4, 2)).select(axis + 1, 1),
        )
    torch.testing.assert_close(features[:, ::2, ::2, ::2], plain.prepare(z))


def test_each_part_of_a_cell_has_its_own_matrix():
    """Zero the matrix of one part, and the features of that part alone vanish."""
    model, z = field(split=2), latent()
    with torch.no_grad():
        model.from_features.weight.view(2, 2, 2, 16, 8)[1, 0, 1] = 0
    zero = (model.prepare(z) == 0).all(dim=-1)[0]
    expected = torch.zeros(8, 8, 8, dtype=torch.bool)
    expected[1::2, ::2, 1::2] = True
    assert (zero == expected).all()


def test_prepare_then_at_equals_the_call():
    model, z, points = field(), latent(), torch.rand(2, 30, 3)
    torch.testing.assert_close(model.at(model.prepare(z), points), model(z, points))


def test_gradient_in_the_latent():
    model, z = field().double(), latent(1).double().requires_grad_()
    points = torch.rand(1, 5, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z: model(z, points), (z,), eps=1e-7, atol=1e-5)


@pytest.mark.parametrize("n", [95, 96])
def test_memory_stays_near_that_of_the_labels(n: int):
    """No tensor that decoding makes may be larger than the numbers of one part of the voxels."""
    model, z, largest = field(), latent(1), [0]

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                largest[0] = max(largest[0], out.untyped_storage().nbytes())
            return out

    with Watch():
        decode_labels(model, z, n)
    assert largest[0] <= 8 * 2**20


def test_decoding_on_demand_has_the_same_values_and_gradients():
    """Gradients at few points, at none and at all of them."""
    model, z, points = field(), latent(), torch.rand(2, 300, 3)
    for reached in ([7, 11, 250], [], list(range(300))):
        weight = torch.zeros(2, 300, 5)
        weight[0, reached] = torch.randn(len(reached), 5)
        found = []
        for decode in (model.at, lambda f, p: decode_on_demand(model, f, p)):
            features = model.prepare(z).detach().requires_grad_()
            logits = decode(features, points)
            (slope,) = torch.autograd.grad((weight * logits).sum(), features)
            found.append((logits.detach(), slope))
        torch.testing.assert_close(found[0], found[1])
