"""One process or several: torchrun starts them, every step they share one global batch."""

from __future__ import annotations

import atexit
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from anatomica.errors import AnatomicaError


@dataclass(frozen=True)
class Team:
    """This process's place among those that train together."""

    rank: int
    world: int
    device: torch.device

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def share(self, batch: int) -> slice:
        """This process's part of a global batch. All draw the same global batch and take their own rows."""
        if batch % self.world:
            raise AnatomicaError(f"a batch of {batch} cannot be shared equally by {self.world} processes")
        size = batch // self.world
        return slice(self.rank * size, (self.rank + 1) * size)

    def wrap(self, module: nn.Module) -> nn.Module:
        if self.world == 1:
            return module
        ids = [self.device.index] if self.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(module, device_ids=ids)

    def mean(self, value: Tensor) -> Tensor:
        """Average over the processes, for the log."""
        if self.world > 1:
            value = value.clone()
            dist.all_reduce(value)
            value /= self.world
        return value

    def agree(self, value: float) -> float:
        """The leader's number for all: clocks differ, schedules must not."""
        if self.world == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.broadcast(shared, src=0)
        return float(shared)

    def any(self, flag: bool) -> bool:
        """True for all as soon as it is true for one."""
        if self.world == 1:
            return flag
        shared = torch.tensor([float(flag)], device=self.device)
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return bool(shared.item() > 0)


def join_team(device: str) -> Team:
    """The team that torchrun describes in the environment, or a team of one."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Team(0, 1, torch.device(device))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    cuda = device.startswith("cuda")
    if not dist.is_initialized():
        dist.init_process_group("nccl" if cuda else "gloo")
        atexit.register(dist.destroy_process_group)
    place = torch.device("cuda", local) if cuda else torch.device(device)
    return Team(dist.get_rank(), dist.get_world_size(), place)
