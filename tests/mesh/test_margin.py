"""Vertices on a field's own border: fields whose borders are known."""

import numpy as np
import torch
from test_surface import TABLE

from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.mesh import prove, surface_of, surface_of_field

N = 40


def decoded(logits) -> LabelMap:
    centres = (torch.arange(N) + 0.5) / N
    r = torch.stack(torch.meshgrid(centres, centres, centres, indexing="ij"), -1).reshape(-1, 3)
    index = logits(r).argmax(1).reshape(N, N, N).numpy()
    return LabelMap(np.array(TABLE.ids, dtype=np.uint8)[index], cube_affine(40.0, N), TABLE)


def ball(r: torch.Tensor) -> torch.Tensor:
    """Label 1 within 12.3 voxels of a point, its logit as crooked as a network's."""
    away = (r - torch.tensor([0.51, 0.49, 0.5])).norm(dim=1) * N - 12.3
    return torch.stack([torch.tanh(away / 3), torch.zeros_like(away), *[torch.full_like(away, -9)] * 3], 1)


def halves(r: torch.Tensor) -> torch.Tensor:
    """The ball cut into labels 1 and 2 by a tilted plane: three labels meet along a circle."""
    logits = ball(r)
    side = (r - 0.5) @ torch.tensor([0.9, 0.3, 0.1]) * 20 - 0.7
    logits[:, 2] = logits[:, 1] + side
    return logits


def distance(made, select=slice(None)) -> np.ndarray:
    centre = (np.array([0.51, 0.49, 0.5]) - 0.5) * 40.0
    return np.abs(np.linalg.norm(made.vertices[select] - centre, axis=1) - 12.3)


def test_vertices_lie_on_the_border() -> None:
    given = decoded(ball)
    made = surface_of_field(given, ball)
    # All but the bias that makes the volume of the facets that of the voxels, and what a cell's rim holds
    # back.
    assert np.median(distance(made)) < 0.03
    assert np.percentile(distance(made), 95) < 0.08
    assert np.median(distance(made)) < 0.5 * np.median(distance(surface_of(given)))
    assert prove(made, given).holds


def test_where_three_labels_meet_all_are_equal() -> None:
    given = decoded(halves)
    made = surface_of_field(given, halves)
    beside = [set(made.triangles[(made.sides == pair).all(1)].ravel()) for pair in ((2, 1), (1, 0), (2, 0))]
    ring = sorted(set.intersection(*beside))
    logits = halves(torch.from_numpy(made.vertices[ring] / 40.0 + 0.5).float())[:, :3]
    assert len(ring) > 40
    assert (logits.max(1).values - logits.min(1).values).median() < 0.05  # about 0.05 voxels
    assert prove(made, given).holds


def test_the_voxels_decide_where_they_disagree_with_the_field() -> None:
    given = decoded(ball)
    repaired = given.array.copy()
    repaired[18:22, 18:22, :6] = 2  # not in the field
    given = LabelMap(repaired, given.affine, TABLE)
    assert prove(surface_of_field(given, ball), given).holds


def waves(seed: int):
    """Four labels by sums of waves of a few voxels: every narrow place that a field can have."""
    rng = np.random.default_rng(seed)
    ways = torch.from_numpy(rng.normal(0, 2.2, (4, 12, 3))).float() * 2 * np.pi
    phases = torch.from_numpy(rng.uniform(0, 2 * np.pi, (4, 12))).float()

    def logits(r: torch.Tensor) -> torch.Tensor:
        found = torch.cos(torch.einsum("pk,lwk->plw", r, ways) + phases).sum(-1)
        return torch.cat([found, torch.full((len(r), 1), -99.0)], 1)

    return logits


def touches(surface, given: LabelMap) -> int:
    return sum(t.pinched_edges + t.pinched_vertices for t in prove(surface, given).tissues)


def test_a_field_makes_tissues_touch_themselves_no_more_than_its_voxels() -> None:
    """Around cells where vertices on the border get into each other's way they stay as relaxed."""
    on_field = on_voxels = 0
    for seed in range(3):
        field = waves(seed)
        given = decoded(field)
        made = surface_of_field(given, field)
        assert prove(made, given).holds
        on_field += touches(made, given)
        on_voxels += touches(surface_of(given), given)
    assert on_voxels > 0
    assert on_field <= on_voxels
