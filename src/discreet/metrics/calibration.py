"""Whether a prediction is right as often as it is sure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.metrics._arrays import Array, Labels, classified
from discreet.privacy import checks

BINS = 15
"""Of Guo et al. 2017."""


@dataclass(frozen=True)
class Reliability:
    """How often predictions of like confidence were right, bin by bin.

    The confidence of a prediction is the probability of its most probable label.
    [0, 1] is cut into bins of equal width, (0, 1/M], (1/M, 2/M], ..., closed on the
    right; a confidence of exactly 0 cannot happen. What a bin is said to be sure of
    is the mean confidence of its predictions, not its middle: the two differ by up
    to half a bin, and paper N's tables show middles of 20 bins (a bin with one
    record counts there as 0.175, 0.275, 0.775 by where it lies).

    Attributes:
        edges: (bins + 1,) from 0 to 1.
        counts: (bins,) predictions in a bin.
        confidence: (bins,) their mean confidence; NaN in an empty bin.
        accuracy: (bins,) how many of them were right, relative; NaN in an empty bin.

    References: Guo et al. 2017; paper N, Section 6.1.

    Example:
        >>> found = Reliability.of([0, 0, 1, 1], [[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]], bins=2)
        >>> found.counts.tolist(), round(found.expected_error, 3)
        ([0, 4], 0.0)
    """

    edges: Array
    counts: Labels
    confidence: Array
    accuracy: Array

    @staticmethod
    def of(y: ArrayLike, probabilities: ArrayLike, *, bins: int = BINS) -> Reliability:
        """Put every prediction into its bin."""
        checks.integer("bins", bins, at_least=1)
        labels, p = classified(y, probabilities)
        # Probabilities of single precision may add up to a little over 1, and one of them exceed it.
        sure = np.minimum(p.max(axis=1), 1.0)
        right = p.argmax(axis=1) == labels
        edges = np.linspace(0.0, 1.0, bins + 1)
        place = np.clip(np.searchsorted(edges, sure, side="left") - 1, 0, bins - 1)
        counts = np.bincount(place, minlength=bins)
        with np.errstate(invalid="ignore"):
            return Reliability(
                edges=edges,
                counts=counts,
                confidence=np.bincount(place, sure, bins) / counts,
                accuracy=np.bincount(place, right, bins) / counts,
            )

    @property
    def gaps(self) -> Array:
        """Accuracy minus confidence per bin: below 0 is over-confident; NaN in an empty bin."""
        return self.accuracy - self.confidence

    @property
    def expected_error(self) -> float:
        """ECE: the mean over predictions of their bin's |gap|.

        Sampling alone gives a perfectly calibrated prediction an ECE of up to about
        0.4 sqrt(bins / records), so that a small test set always finds some.
        """
        full = self.counts > 0
        return float(np.sum(self.counts[full] * np.abs(self.gaps[full])) / self.counts.sum())

    def maximum_error(self, *, at_least: int = 1) -> float:
        """MCE: the largest |gap| of a bin with at least so many predictions.

        A bin of one prediction has a gap of its confidence or of the rest to 1, so
        that with the default, which is the published definition, MCE mostly says
        how empty the emptiest bin is.
        """
        checks.integer("at_least", at_least, at_least=1)
        enough = self.counts >= at_least
        if not enough.any():
            raise ValueError(
                f"at_least must be at most {self.counts.max()}, the fullest bin, got {at_least}; lower it"
            )
        return float(np.abs(self.gaps[enough]).max())


def expected_calibration_error(y: ArrayLike, probabilities: ArrayLike, *, bins: int = BINS) -> float:
    """ECE; see `Reliability`, which also has what it is made of."""
    return Reliability.of(y, probabilities, bins=bins).expected_error


def maximum_calibration_error(
    y: ArrayLike, probabilities: ArrayLike, *, bins: int = BINS, at_least: int = 1
) -> float:
    """MCE over bins with at least so many predictions; see `Reliability`."""
    return Reliability.of(y, probabilities, bins=bins).maximum_error(at_least=at_least)
