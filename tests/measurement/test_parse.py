import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from anatomica.measurement.domains.domain import stack
from anatomica.measurement.domains.volumes import box_domain, global_domain
from anatomica.measurement.parse import l_parse, slice_volume, subset, v_parse
from oracles import Ellipsoid


def soft_map(n: int = 24) -> torch.Tensor:
    """Probabilities of background and two overlapping tissues."""
    a = Ellipsoid((0.4, 0.5, 0.5), (0.25, 0.2, 0.2)).volume(n)
    b = Ellipsoid((0.65, 0.5, 0.5), (0.2, 0.2, 0.25)).volume(n)
    V = torch.stack([torch.full_like(a, 0.3), a, b])[None] + 1e-3
    return V / V.sum(1, keepdim=True)


def voxel_field(V: torch.Tensor):
    """The voxel map itself as a field: trilinear probabilities, returned as log-probabilities."""

    def field(points: torch.Tensor) -> torch.Tensor:
        channels = [slice_volume(V[:, c], points) for c in range(V.shape[1])]
        return torch.stack(channels, dim=-1).clamp_min(1e-12).log()

    return field


@settings(max_examples=20, deadline=None)
@given(
    centre=st.tuples(*[st.floats(0.3, 0.7)] * 3),
    angles=st.tuples(*[st.floats(-180, 180)] * 3),
    edge=st.floats(0.1, 0.35),
)
def test_v_and_l_parsing_agree_when_the_field_is_the_voxel_map(centre, angles, edge) -> None:
    V = soft_map()
    R = torch.from_numpy(Rotation.from_euler("xyz", angles, degrees=True).as_matrix())[None]
    t, s = torch.tensor([centre]).double(), torch.full((1, 3), edge).double()
    domains = box_domain(t, s, R, (5, 6, 7)).to(V)
    v = v_parse(V, (1, 2), domains, "sum")
    latent = l_parse(voxel_field(V), (1, 2), domains, union="sum")
    torch.testing.assert_close(v, latent, atol=2e-5, rtol=0)


def test_outside_the_cube_is_background_for_both() -> None:
    V = torch.ones(1, 2, 8, 8, 8) / 2
    far = box_domain(
        torch.full((1, 3), 1.5).double(),
        torch.full((1, 3), 0.4).double(),
        torch.eye(3).double()[None],
        (4, 4, 4),
    ).to(V)
    assert v_parse(V, (1,), far).abs().max() == 0
    assert l_parse(lambda p: torch.zeros(*p.shape[:2], 2), (1,), far).abs().max() == 0


def test_union_by_max_dips_at_an_interface_and_by_sum_does_not() -> None:
    V = torch.tensor([0.0, 0.5, 0.5])
    assert subset(V, (1, 2), "max").item() == 0.5
    assert subset(V, (1, 2), "sum").item() == 1.0
    assert subset(V, (2,)).item() == 0.5


def test_the_whole_cube_at_its_own_resolution_is_passed_through() -> None:
    V = torch.rand(2, 3, 8, 8, 8)
    S = v_parse(V, (2,), global_domain((8, 8, 8)))
    assert torch.equal(S[:, 0], V[:, 2])
    X = global_domain((8, 8, 8)).points().float().expand(2, 1, 8, 8, 8, 3)
    torch.testing.assert_close(slice_volume(V[:, 2], X), S, atol=1e-5, rtol=0)


def test_every_sample_may_have_its_own_domains() -> None:
    V = torch.rand(2, 2, 8, 8, 8)
    one, two = (
        box_domain(
            torch.full((3, 3), t).double(),
            torch.full((3, 3), 0.3).double(),
            torch.eye(3).double().expand(3, 3, 3),
            (2, 3, 4),
        )
        for t in (0.4, 0.6)
    )
    both = v_parse(V, (1,), stack([one, two]))
    torch.testing.assert_close(both[0], v_parse(V[:1], (1,), one)[0])
    torch.testing.assert_close(both[1], v_parse(V[1:], (1,), two)[0])


def test_a_higher_temperature_softens() -> None:
    whole = global_domain((2, 2, 2)).to(torch.zeros(()))
    hot = l_parse(lambda p: torch.tensor([0.0, 4.0]).expand(*p.shape[:2], 2), (1,), whole, temperature=4.0)
    assert torch.allclose(hot, torch.sigmoid(torch.tensor(1.0)).expand_as(hot))
