"""A potential as a plain loss in your own training loop: a segmentation that must be one ring.

The image of a ring is noisy, and a part of it was too faint to be labelled. Cross-entropy alone leaves the
ring open; with the topological potential added, the network closes it. `geometric_potential` of
`anatomica.measurement.moments.measure_moments` is used in the same way.

    python examples/potential_as_loss.py
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anatomica.guidance.potentials import topological_potential
from anatomica.measurement.homology import betti_numbers
from anatomica.spec.quantities import BettiPrior

N = 24
RING = BettiPrior(b0=1, b1=1, b2=0)


def faint_ring(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """An image (1, 1, N, N, N) of a ring, its labels, and where there are labels."""
    line = (torch.arange(N) + 0.5) / N - 0.5
    x, y, z = torch.meshgrid(line, line, line, indexing="ij")
    ring = (((x.hypot(y) - 0.28) ** 2 + z**2) < 0.09**2).float()
    faint = (x > 0) & (y.abs() < 0.08)
    noise = torch.randn(ring.shape, generator=torch.Generator().manual_seed(seed))
    image = ring * torch.where(faint, 0.35, 1.0) + 0.35 * noise
    return image[None, None], ring[None, None], ~faint[None, None]


def train(weight: float, steps: int = 120) -> tuple[int, int, int]:
    """Components, loops and voids of what the network has learnt to see."""
    torch.manual_seed(0)
    image, labels, labelled = faint_ring()
    network = nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 1, 3, padding=1))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(steps):
        S = network(image).sigmoid()
        loss = F.binary_cross_entropy(S[labelled], labels[labelled])
        # (batch, substructures, a, b, c) in, one value a substructure out.
        loss = loss + weight * topological_potential(S, RING).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return betti_numbers(network(image)[0, 0].detach().numpy() > 0)


if __name__ == "__main__":
    print("wanted:                   components 1, loops 1, voids 0")
    for name, weight in (("cross-entropy alone:    ", 0.0), ("with the potential:     ", 0.005)):
        b0, b1, b2 = train(weight)
        print(f"{name}  components {b0}, loops {b1}, voids {b2}")
