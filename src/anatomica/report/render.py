"""Pictures of label maps: an orthographic ray caster, contact sheets and mid-slices.

Anatomy is judged by eye, so every command that makes label maps also draws them. The caster marches
parallel rays through the foreground, smoothed by less than a voxel, to its first crossing of 1/2, shades
the surface by its gradient and by how buried the point is, and colours it by the label underneath.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy import ndimage

from anatomica.anatomy.label_map import LabelMap
from anatomica.files import figure_png, write_atomic, write_image

STRIDE = 0.5
"""Voxels that a ray goes at a time near a surface."""


@dataclass(frozen=True)
class Camera:
    """Orthographic view of a volume: azimuth 0 looks from the front (patient's left on the image's right),
    positive azimuth walks towards the patient's left, elevation is upwards; zoom 1 shows the whole cube.
    """

    azimuth_deg: float = 0.0
    elevation_deg: float = 10.0
    zoom: float = 1.0

    def axes(self) -> np.ndarray:
        """Rows: image right, image up, direction into the scene, as unit vectors in RAS."""
        a, e = np.radians(self.azimuth_deg), np.radians(self.elevation_deg)
        toward = np.array([-np.sin(a) * np.cos(e), np.cos(a) * np.cos(e), np.sin(e)])
        into = -toward
        right = np.cross(into, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(right, into), into])


@dataclass(frozen=True)
class Picture:
    """A rendered view: RGB image, depth of the first hit (inf where none) and the mm-to-pixel map."""

    image: np.ndarray
    depth_mm: np.ndarray
    camera: Camera
    centre_mm: np.ndarray
    half_mm: float

    def project(self, points_mm: np.ndarray) -> np.ndarray:
        """RAS mm -> (column, row, depth in mm)."""
        seen = (points_mm - self.centre_mm) @ self.camera.axes().T
        size = self.image.shape[0]
        column = (seen[..., 0] / self.half_mm + 1) / 2 * size - 0.5
        row = (1 - seen[..., 1] / self.half_mm) / 2 * size - 0.5
        return np.stack([column, row, seen[..., 2]], -1)


def render(
    label_map: LabelMap,
    camera: Camera = Camera(),
    size: int = 320,
    hide: Sequence[str] = (),
    ghost: Sequence[str] = (),
) -> Picture:
    """Draw a label map in RAS on white. `hide` leaves tissues out, `ghost` draws them translucent."""
    label_map = _pad(label_map)
    solid_ids = [x.id for x in label_map.table.labels[1:] if x.name not in (*hide, *ghost)]
    ghost_ids = label_map.table.ids_of(ghost)
    spacing = label_map.spacing_mm
    extent = spacing * np.array(label_map.shape)
    centre = (label_map.affine @ np.append((np.array(label_map.shape) - 1) / 2, 1))[:3]
    half = float(extent.max()) / 2 / camera.zoom
    image = np.full((size, size, 3), 255, dtype=np.float32)
    depth = np.full((size, size), np.inf, dtype=np.float32)
    for ids, alpha in ((solid_ids, 1.0), (ghost_ids, 0.28)):
        mask = np.isin(label_map.array, ids)
        if not mask.any():
            continue
        colour, hit_depth = _cast(label_map, mask, camera, size, half, extent)
        front = hit_depth < depth
        image[front] = alpha * colour[front] + (1 - alpha) * image[front]
        if alpha == 1.0:
            depth = np.minimum(depth, hit_depth)
    return Picture(np.clip(image, 0, 255).astype(np.uint8), depth, camera, centre, half)


def _pad(label_map: LabelMap, voxels: int = 2) -> LabelMap:
    """An empty rim around the volume, so that tissue cut by the border is drawn with a cap."""
    affine = label_map.affine.copy()
    affine[:3, 3] -= affine[:3, :3] @ np.full(3, voxels)
    return LabelMap(np.pad(label_map.array, voxels), affine, label_map.table)


def _cast(label_map, mask, camera, size, half, extent):
    """Colour and depth of the first surface along each ray; depth is inf where the ray misses."""
    soft = _smooth(mask)
    buried = ndimage.gaussian_filter(soft, 3.0)
    # The chessboard distance never exceeds the Euclidean one, so a ray may leap that far through empty space.
    clear = np.asarray(ndimage.distance_transform_cdt(soft < 0.1, "chessboard"), dtype=np.float32)
    field = torch.from_numpy(np.stack([soft, clear, buried, *np.gradient(soft)]))[None]
    right, up, into = torch.from_numpy(camera.axes().astype(np.float32))
    line = (torch.arange(size, dtype=torch.float32) + 0.5) / size * 2 - 1
    voxel = float(min(label_map.spacing_mm))
    position = (half * (line[None, :, None] * right - line[:, None, None] * up)).reshape(-1, 3)
    edge = torch.from_numpy(extent.astype(np.float32))

    def sample(points: torch.Tensor, channels: slice) -> torch.Tensor:
        grid = (points * 2 / edge).flip(-1)[None, :, None, None]
        out = F.grid_sample(
            field[:, channels], grid, mode="bilinear", padding_mode="zeros", align_corners=False
        )
        return out[0, :, :, 0, 0]

    enter, leave = _slab(position, into, edge / 2)
    travelled = enter.clone()
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
    labels = _nearest_label(label_map.array * mask, (inside * 2 / edge).numpy())
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


def mid_slices(label_map: LabelMap, size: int = 320, at: np.ndarray | None = None) -> np.ndarray:
    """Sagittal, coronal and axial slices side by side, patient's left on the right, as an RGB image."""
    palette = np.full((max(label_map.table.ids) + 1, 3), 255, dtype=np.uint8)
    for x in label_map.table.labels[1:]:
        palette[x.id] = x.colour
    index = (np.array(label_map.shape) // 2) if at is None else np.clip(at, 0, np.array(label_map.shape) - 1)
    views = []
    for axis in range(3):
        plane = np.take(label_map.array, int(index[axis]), axis=axis)
        picture = palette[plane.T[::-1]]
        if axis != 0:
            picture = picture[:, ::-1]
        rows = np.linspace(0, picture.shape[0] - 1, size).round().astype(int)
        columns = np.linspace(0, picture.shape[1] - 1, size).round().astype(int)
        view = picture[rows][:, columns]
        view[[0, -1]] = view[:, [0, -1]] = 200
        views.append(view)
    return np.concatenate(views, axis=1)


def contact_sheet(
    images: Sequence[np.ndarray],
    path: Path,
    titles: Sequence[str] | None = None,
    columns: int = 4,
    colours: int | None = None,
) -> None:
    """Tile images of equal size into one PNG with a title under each, of so many colours or of all."""
    import io

    import matplotlib.pyplot as plt
    from PIL import Image

    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    height, width = images[0].shape[:2]
    figure, axes = plt.subplots(
        rows, columns, figsize=(columns * width / 100, rows * (height + 24) / 100), dpi=100, squeeze=False
    )
    for n, axis in enumerate(axes.flat):
        axis.axis("off")
        if n < len(images):
            axis.imshow(images[n], interpolation="lanczos")
            if titles is not None:
                axis.set_title(titles[n], fontsize=8, pad=2)
    figure.subplots_adjust(
        left=0, right=1, top=1 - 0.24 / (rows * (height + 24) / 100), bottom=0, wspace=0.02, hspace=0.08
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = figure_png(figure)
    plt.close(figure)
    if colours is None:
        write_atomic(path, drawn)
        return
    with Image.open(io.BytesIO(drawn)) as sheet:
        write_image(path, sheet.convert("RGB").quantize(colours), optimize=True)
