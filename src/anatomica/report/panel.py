"""Small pictures with wires and a title, drawn by Pillow: every sample has some, so they must cost little."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from itertools import groupby

from PIL import Image, ImageColor, ImageDraw, ImageFont

from anatomica.report.render import Picture
from anatomica.report.wires import FAINT, OPAQUE, Wire, projected

TITLE = 20
"""Pixels above a picture."""
FINER = 3
"""Lines are drawn so many times larger and made smaller again, which smooths their edges."""
POINT = 80 / 72
"""Pixels of a wire's unit of width."""


def panel(picture: Picture, wires: Sequence[Wire], title: str, size: int) -> Image.Image:
    """A square picture of `size` pixels with its wires, full before the surface and faint behind it."""
    image = Image.fromarray(picture.image).resize((size, size), Image.Resampling.LANCZOS)
    if wires:
        image = Image.alpha_composite(image.convert("RGBA"), _lines(picture, wires, size)).convert("RGB")
    whole = Image.new("RGB", (size, size + TITLE), "white")
    whole.paste(image, (0, TITLE))
    ImageDraw.Draw(whole).text((size / 2, TITLE / 2), title, fill="black", font=_font(), anchor="mm")
    return whole


def side_by_side(images: Sequence[Image.Image], columns: int | None = None) -> Image.Image:
    """Images of one size in rows of so many columns, or in one row."""
    columns = min(columns or len(images), len(images))
    width, height = images[0].size
    sheet = Image.new("RGB", (columns * width, -(-len(images) // columns) * height), "white")
    for n, image in enumerate(images):
        sheet.paste(image, (n % columns * width, n // columns * height))
    return sheet


def png(image: Image.Image) -> bytes:
    """The bytes of a PNG file."""
    data = io.BytesIO()
    image.save(data, format="PNG")
    return data.getvalue()


def _lines(picture: Picture, wires: Sequence[Wire], size: int) -> Image.Image:
    """The wires on a transparent image; what is faint is drawn first, so that it never covers the rest."""
    large = Image.new("RGBA", (FINER * size, FINER * size))
    draw = ImageDraw.Draw(large)
    scale = FINER * size / len(picture.image)
    for wanted in (FAINT, OPAQUE):
        for wire in wires:
            colour = (*ImageColor.getrgb(wire.colour)[:3], round(255 * wanted))
            for line in wire.lines:
                at, alpha = projected(picture, line)
                points = [(scale * (x + 0.5), scale * (y + 0.5)) for x, y in at.tolist()]
                for same, steps in groupby(range(len(points) - 1), key=lambda i: alpha[i]):
                    if same == wanted:
                        first, *more = steps
                        last = more[-1] if more else first
                        width = round(FINER * POINT * wire.width)
                        draw.line(points[first : last + 2], colour, width, joint="curve")
    return large.resize((size, size), Image.Resampling.BOX)


@cache
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(11)
