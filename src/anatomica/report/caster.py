"""The orthographic ray caster behind `report.render`.

It marches parallel rays through the foreground, smoothed by less than a voxel, to its first crossing of 1/2,
shades the surface by its gradient and by how buried the point is, and colours it by the label underneath.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage

from anatomica.anatomy.label_map import LabelMap

STRIDE = 0.5
"""Voxels that a ray goes at a time near a surface."""


@dataclass(frozen=True, eq=False)
class Layer:
    """Some tissues as rays see them: labels, fields (soft mask, clearance, burial, gradient), and the voxels
    of the surface in mm from the volume's centre."""

    labels: np.ndarray
    fields: torch.Tensor
    shell_mm: np.ndarray


def layer_of(label_map: LabelMap, mask: np.ndarray) -> Layer:
    soft = _smooth(mask)
    buried = ndimage.gaussian_filter(soft, 3.0)
    # The chessboard distance never exceeds the Euclidean one, so a ray may leap that far through empty space.
    clear = np.asarray(ndimage.distance_transform_cdt(soft < 0.1, "chessboard"), dtype=np.float32)
    fields = torch.from_numpy(np.stack([soft, clear, buried, *np.gradient(soft)]))[None]
    inside = soft >= 0.5
    shell = np.argwhere(inside & np.logical_not(ndimage.binary_erosion(inside)))
    shell_mm = (shell - (np.array(label_map.shape) - 1) / 2) * label_map.spacing_mm
    return Layer(label_map.array * mask, fields, shell_mm)


def _span(
    layer: Layer, axes: np.ndarray, position: torch.Tensor, half: float, spacing_mm: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """Depths in mm between which a ray may meet the surface; the first is infinite where it meets none.

    A crossing of 1/2 lies in a cell with a corner in the shell: seen from the camera, at most a cell's extent
    away from it. So the shell's voxels in the ray's square of that size and its eight neighbours bound it.
    """
    seen = layer.shell_mm @ axes.T
    *across, along = np.abs(axes) @ spacing_mm
    square = max(across)
    count = int(np.ceil(2 * half / square)) + 2
    place = np.floor((seen[:, :2] + half) / square).astype(int) + 1
    shown = ((place >= 0) & (place < count)).all(1)
    at, depth = tuple(place[shown].T), seen[shown, 2]
    first, last = np.full((count, count), np.inf), np.full((count, count), -np.inf)
    np.minimum.at(first, at, depth - along)
    np.maximum.at(last, at, depth + along)
    ends = np.stack([ndimage.minimum_filter(first, 3), ndimage.maximum_filter(last, 3)]).astype(np.float32)
    plane = torch.from_numpy(axes[:2].T.astype(np.float32))
    of_ray = (((position @ plane + half) / square).floor().long() + 1).clamp(0, count - 1)
    begin, end = torch.from_numpy(ends)[:, of_ray[:, 0], of_ray[:, 1]]
    return begin, end


def cast(
    label_map: LabelMap, layer: Layer, axes: np.ndarray, size: int, half: float, extent: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Colour and depth of the first surface along each ray; depth is inf where the ray misses."""
    right, up, into = torch.from_numpy(axes.astype(np.float32))
    line = (torch.arange(size, dtype=torch.float32) + 0.5) / size * 2 - 1
    voxel = float(min(label_map.spacing_mm))
    position = (half * (line[None, :, None] * right - line[:, None, None] * up)).reshape(-1, 3)
    edge = torch.from_numpy(extent.astype(np.float32))

    def sample(points: torch.Tensor, channels: slice) -> torch.Tensor:
        grid = (points * 2 / edge).flip(-1)[None, :, None, None]
        out = F.grid_sample(
            layer.fields[:, channels], grid, mode="bilinear", padding_mode="zeros", align_corners=False
        )
        return out[0, :, :, 0, 0]

    begin, end = _span(layer, axes, position, half, label_map.spacing_mm)
    enter, leave = _slab(position, into, edge / 2)
    travelled, leave = torch.maximum(enter, begin), torch.minimum(leave, end)
    hit = torch.zeros(len(position), dtype=torch.bool)
    alive = (travelled < leave).nonzero()[:, 0]
    before = torch.zeros(len(position))
    while len(alive):
        value, room = sample(position[alive] + travelled[alive, None] * into, slice(0, 2))
        crossed = value >= 0.5
        done = alive[crossed]
        gap = (value[crossed] - before[done]).clamp_min(1e-6)
        travelled[done] -= STRIDE * voxel * ((value[crossed] - 0.5) / gap).clamp(0, 1)
        hit[done] = True
        before[alive] = value
        alive, room = alive[~crossed], room[~crossed]
        travelled[alive] += voxel * (room - 2).clamp_min(STRIDE)
        alive = alive[travelled[alive] < leave[alive]]
    where = position[hit] + travelled[hit, None] * into
    values = sample(where, slice(2, 6))
    normal = -values[1:].T / torch.from_numpy(label_map.spacing_mm.astype(np.float32))
    normal = normal / normal.norm(dim=1, keepdim=True).clamp_min(1e-6)
    light = -into + 0.45 * up - 0.35 * right
    light = light / light.norm()
    shade = 0.38 + 0.62 * (normal @ light).clamp_min(0) + 0.10 * (normal @ -into).clamp_min(0)
    shade = shade * (1.12 - 0.55 * values[0]).clamp(0.4, 1.0)
    inside = where + 0.45 * voxel * into
    labels = _nearest_label(layer.labels, (inside * 2 / edge).numpy())
    palette = np.zeros((max(label_map.table.ids) + 1, 3), dtype=np.float32)
    for x in label_map.table.labels:
        palette[x.id] = x.colour
    colour = np.zeros((size * size, 3), dtype=np.float32)
    depth = np.full(size * size, np.inf, dtype=np.float32)
    colour[hit.numpy()] = palette[labels] * shade[:, None].numpy()
    depth[hit.numpy()] = travelled[hit].numpy()
    return colour.reshape(size, size, 3), depth.reshape(size, size)


def _smooth(mask: np.ndarray) -> np.ndarray:
    """The mask, smoothed by less than a voxel.

    What is one voxel wide would fall below 1/2 and vanish. No voxel's centre does, and what is thin by
    itself, not a step in the surface of something thick, is raised along its whole length.
    """
    own = mask.astype(np.float32)
    soft = ndimage.gaussian_filter(own, 0.7)
    thick = ndimage.binary_opening(mask, np.ones((2, 2, 2)))
    thin = own * (ndimage.maximum_filter(thick, 3) == 0)
    raised = np.maximum(np.float32(0.6) * own, 3 * ndimage.gaussian_filter(thin, 0.7))
    return np.maximum(soft, raised).clip(max=1)


def _slab(
    position: torch.Tensor, into: torch.Tensor, half: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where parallel rays enter and leave a box centred at 0 (enter > leave where they miss it)."""
    slope = torch.where(into.abs() < 1e-6, torch.full_like(into, 1e-6), into)
    first, second = (-half - position) / slope, (half - position) / slope
    return torch.minimum(first, second).amax(-1), torch.maximum(first, second).amin(-1)


def _nearest_label(array: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Label at points of the cube [-1, 1]^3; where that voxel is empty, the closest filled one's label."""
    shape = np.array(array.shape)
    index = np.clip(np.round((unit + 1) / 2 * shape - 0.5).astype(int), 0, shape - 1)
    found = array[tuple(index.T)]
    for offset in np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), -1).reshape(-1, 3):
        empty = found == 0
        if not empty.any():
            break
        near = np.clip(index[empty] + offset, 0, shape - 1)
        found[empty] = array[tuple(near.T)]
    return found
