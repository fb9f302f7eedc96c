"""How often each attack catches its bug, and accuses the right mechanism, over fresh seeds.

python -m tests.planted.power [SEEDS]    from the root of the repository
"""

from __future__ import annotations

import sys

from . import chains, gradient_steps, outputs, posteriors, releases, sums
from .kit import PLANTED, Attack, attacked

_FILLED = chains, gradient_steps, outputs, posteriors, releases, sums


def main(seeds: int) -> None:
    """One line per bug: caught, and falsely accused, of how many."""
    for bug in PLANTED.values():
        if bug.check is not attacked:
            continue
        sides: list[Attack] = [bug.broken(), bug.right()]
        caught, accused = (sum(side.run(key).caught for key in range(seeds)) for side in sides)
        print(f"{bug.name:45} caught {caught:4} accused {accused:4} of {seeds}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
