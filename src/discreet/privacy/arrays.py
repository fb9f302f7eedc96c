"""The one array type of the accountant: float64, whatever the shape."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
