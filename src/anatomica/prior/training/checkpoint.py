"""A training run's state in one safetensors file: model, EMA, optimizer, counters. Nothing is pickled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from anatomica.errors import AnatomicaError, shown
from anatomica.files import write_atomic


@dataclass
class RunState:
    """Where a run stands. Randomness and data order are functions of (seed, step): no state to keep."""

    step: int = 0
    elapsed_s: float = 0.0


class EMA:
    """Exponential moving average of a model's parameters (buffers are copied), warmed up at the start."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.state = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                self.state[name].lerp_(value, 1 - decay)
            else:
                self.state[name].copy_(value)


def save_checkpoint(
    path: Path,
    model: nn.Module,
    ema: EMA,
    optimizer: torch.optim.AdamW,
    progress: RunState,
    about: dict[str, Any],
) -> None:
    """Write everything; a kill at any moment leaves the old or the new state."""
    tensors: dict[str, Tensor] = {f"model.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"ema.{k}": v for k, v in ema.state.items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"adam.{key}.{name}"] = value
    tensors = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    header = {"progress": vars(progress), "about": about}
    write_atomic(path, save(tensors, metadata={"anatomica": json.dumps(header)}))


def load_checkpoint(
    path: Path, model: nn.Module, ema: EMA | None = None, optimizer: torch.optim.AdamW | None = None
) -> tuple[RunState, dict[str, Any]]:
    """Put a saved state back into the given objects; returns where the run stood and its description."""
    tensors, header = read_checkpoint(path)
    load_into(model, {k[6:]: v for k, v in tensors.items() if k.startswith("model.")}, path)
    if ema is not None:
        ema.state = {k[4:]: v for k, v in tensors.items() if k.startswith("ema.")}
    if optimizer is not None:
        for name, parameter in model.named_parameters():
            keys = ("step", "exp_avg", "exp_avg_sq")
            found = {key: tensors[f"adam.{key}.{name}"] for key in keys if f"adam.{key}.{name}" in tensors}
            if found:
                # Adam keeps its step counter on the CPU whatever the parameter's device.
                optimizer.state[parameter] = {
                    k: v if k == "step" else v.to(parameter.device, memory_format=_layout(parameter))
                    for k, v in found.items()
                }
    return RunState(**header["progress"]), header["about"]


def _layout(parameter: Tensor) -> torch.memory_format:
    """The parameter's own memory layout; a state of another one makes every Adam step copy."""
    if parameter.ndim == 5 and parameter.is_contiguous(memory_format=torch.channels_last_3d):
        return torch.channels_last_3d
    return torch.contiguous_format


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a checkpoint file."""
    if not path.is_file():
        raise AnatomicaError(f"no checkpoint at {path}; start the run without --resume")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["anatomica"])
            return {key: file.get_tensor(key) for key in file.keys()}, header  # noqa: SIM118
    except RecursionError:
        raise AnatomicaError(f"{path} is not a readable anatomica checkpoint (nested too deeply)") from None
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise AnatomicaError(f"{path} is not a readable anatomica checkpoint ({error})") from None


def load_into(model: nn.Module, state: dict[str, Tensor], source: Path | str) -> None:
    """Strict load with an error that names the file and the first mismatch."""
    check_state(model, state, source)
    model.load_state_dict(state)


def check_state(model: nn.Module, state: dict[str, Tensor], source: Path | str) -> None:
    """Refuse tensors that are missing, unknown, of another shape, or not finite; the first is named."""
    own = model.state_dict()
    missing, extra = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    if missing or extra:
        raise AnatomicaError(
            f"{source} does not fit the model: {len(missing)} tensors missing, "
            f"{len(extra)} unknown (first: {shown((missing + extra)[0])})"
        )
    for name, value in state.items():
        if value.shape != own[name].shape:
            raise AnatomicaError(
                f"{source} does not fit the model: {name} has shape {tuple(value.shape)}, "
                f"expected {tuple(own[name].shape)}"
            )
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise AnatomicaError(f"{source}: {name} has numbers that are not finite; export it again")
