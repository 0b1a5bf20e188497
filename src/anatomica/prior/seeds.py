"""From a seed to a random generator, without losing a bit of it."""

from __future__ import annotations

import numpy as np
import torch

from anatomica.anatomy.bounds import check_seed

_STATE = slice(24, 24 + 624 * 8)
"""Where torch's CPU generator keeps the 624 words of its Mersenne Twister, 8 bytes each, in `get_state`."""


def seeded(seed: int) -> torch.Generator:
    """A generator on the CPU, so that a seed means the same on every device; another seed is another stream.

    Torch reads the lower 32 bits of a seed and forgets the others: 0 and 2^32 would be the same patient. The
    upper bits are mixed into the generator's state here; seeds below 2^32 keep the stream that torch gives.
    """
    generator = torch.Generator().manual_seed(check_seed(seed))
    if seed >> 32:
        state = generator.get_state().numpy().copy()
        words = state[_STATE].view(np.uint64)
        words ^= np.random.SeedSequence(seed >> 32).generate_state(624, np.uint32)
        generator.set_state(torch.from_numpy(state))
    return generator
