"""Names for the arrays that several packages pass around."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""An array of float64."""
Indices = NDArray[np.int64]
"""An array of int64 that selects rows or items of another array."""
