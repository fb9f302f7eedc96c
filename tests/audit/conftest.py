"""Makes the helpers of this folder importable, and their assertions readable."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("catalogue")
