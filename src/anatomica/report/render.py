"""Pictures of label maps: views from any side, contact sheets and mid-slices.

Anatomy is judged by eye, so every command that makes label maps also draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anatomica.anatomy.label_map import LabelMap
from anatomica.files import figure_png, write_atomic, write_image
from anatomica.report.caster import Layer, cast, layer_of

MOST_DRAWN = 256
"""Voxels along an edge that are drawn; pictures have some 300 pixels."""


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
    return render_views(label_map, [camera], size, hide, ghost)[0]


def render_views(
    label_map: LabelMap,
    cameras: Sequence[Camera],
    size: int = 320,
    hide: Sequence[str] = (),
    ghost: Sequence[str] = (),
) -> list[Picture]:
    """The same from several sides, cheaper than one by one: surfaces are smoothed once."""
    label_map = _pad(_thinned(label_map))
    solid = [x.id for x in label_map.table.labels[1:] if x.name not in (*hide, *ghost)]
    layers = []
    for ids, alpha in ((solid, 1.0), (label_map.table.ids_of(ghost), 0.28)):
        mask = np.isin(label_map.array, ids)
        if mask.any():
            layers.append((layer_of(label_map, mask), alpha))
    return [_picture(label_map, layers, camera, size) for camera in cameras]


def _picture(
    label_map: LabelMap, layers: Sequence[tuple[Layer, float]], camera: Camera, size: int
) -> Picture:
    extent = label_map.spacing_mm * np.array(label_map.shape)
    centre = (label_map.affine @ np.append((np.array(label_map.shape) - 1) / 2, 1))[:3]
    half = float(extent.max()) / 2 / camera.zoom
    image = np.full((size, size, 3), 255, dtype=np.float32)
    depth = np.full((size, size), np.inf, dtype=np.float32)
    for layer, alpha in layers:
        colour, hit_depth = cast(label_map, layer, camera.axes(), size, half, extent)
        front = hit_depth < depth
        image[front] = alpha * colour[front] + (1 - alpha) * image[front]
        if alpha == 1.0:
            depth = np.minimum(depth, hit_depth)
    return Picture(np.clip(image, 0, 255).astype(np.uint8), depth, camera, centre, half)


def _thinned(label_map: LabelMap) -> LabelMap:
    """Every k-th voxel of a label map that is finer than a picture shows, so that memory is bounded."""
    k = -(-max(label_map.shape) // MOST_DRAWN)
    if k == 1:
        return label_map
    affine = label_map.affine.copy()
    affine[:3, 3] += affine[:3, :3] @ np.full(3, k // 2)
    affine[:3, :3] *= k
    return LabelMap(
        np.ascontiguousarray(label_map.array[k // 2 :: k, k // 2 :: k, k // 2 :: k]), affine, label_map.table
    )


def _pad(label_map: LabelMap, voxels: int = 2) -> LabelMap:
    """An empty rim around the volume, so that tissue cut by the border is drawn with a cap."""
    affine = label_map.affine.copy()
    affine[:3, 3] -= affine[:3, :3] @ np.full(3, voxels)
    return LabelMap(np.pad(label_map.array, voxels), affine, label_map.table)


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
