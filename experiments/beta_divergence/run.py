"""All of paper B's experiments, compared with expected.json: `make experiment NAME=beta_divergence`; hours.

DISCREET_DATA=/path/to/data python experiments/beta_divergence/run.py
python experiments/beta_divergence/run.py --check     # the committed results only, in seconds
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(HERE))
    import logistic

    if "--check" not in arguments:
        logistic.main([])
        for part in ("attack", "networks"):
            sys.argv = [part]
            runpy.run_path(str(HERE / f"{part}.py"), run_name="__main__")
    return logistic.check()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
