"""The one Dataset that training reads: phantoms and imported data alike, out of a cache."""

from __future__ import annotations

from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.utils.data import Dataset

from anatomica.anatomy.label_map import regrid
from anatomica.anatomy.labels import LabelTable
from anatomica.data.cache import Case, Split, open_cache
from anatomica.errors import AnatomicaError


class LabelMapDataset(Dataset):
    """Label maps of one split of a cache, as channel indices: item i is uint8 (n, n, n), 0 the background.

    The channel order is the label table's. With `n`, every case is brought to that resolution.
    """

    def __init__(self, cache_path: str | Path, split: Split = "train", n: int | None = None) -> None:
        self.cache = open_cache(cache_path)
        self.n = self.cache.n if n is None else n
        self.cases: tuple[Case, ...] = self.cache.split(split)
        if not self.cases:
            raise AnatomicaError(
                f"{self.cache.folder}: no {split} case among {len(self.cache.cases)} cases "
                f"({len(self.cache.excluded)} excluded)"
            )

    @property
    def table(self) -> LabelTable:
        return self.cache.anatomy.table

    @property
    def edge_mm(self) -> float:
        return self.cache.edge_mm

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, i: int) -> UInt8[Tensor, "n n n"]:
        label_map = self.cache.load(self.cases[i])
        if self.n != self.cache.n:
            label_map = regrid(label_map, self.n)
        return torch.from_numpy(self.table.index[label_map.array])

    def load_all(self) -> UInt8[Tensor, "cases n n n"]:
        """All cases in one tensor: at 64^3 a quarter of a megabyte per case, so training runs from memory."""
        out = torch.empty((len(self), self.n, self.n, self.n), dtype=torch.uint8)
        for i in range(len(self)):
            out[i] = self[i]
        return out
