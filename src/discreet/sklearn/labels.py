"""Labels that are declared, never read off the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets


class DeclaredLabels(ClassifierMixin):
    """A classifier with an argument `classes`: which labels there are would tell that somebody has them."""

    classes: Sequence[Any]
    classes_: NDArray[Any]

    def _codes(self, y: ArrayLike, *, at_most: int | None = None) -> NDArray[np.float64]:
        """Each label's place among the declared ones, which become `classes_`."""
        check_classification_targets(y)
        self.classes_ = np.asarray(self.classes)
        number = len(self.classes_) if self.classes_.ndim == 1 else 0
        if number < 2 or len(set(self.classes_.tolist())) < number or number > (at_most or number):
            wanted = "two" if at_most == 2 else "two or more"
            raise ValueError(
                f"classes must be {wanted} different labels, got {self.classes!r}; declare "
                f"{'both' if at_most == 2 else 'each once'}"
            )
        found = np.asarray(y)[:, None] == self.classes_
        unknown = int(np.count_nonzero(~found.any(axis=1)))
        if unknown:
            only = "Only binary classification is supported: y" if number == 2 else "y"
            raise ValueError(
                f"{only} must hold the {'two ' if number == 2 else ''}declared classes "
                f"{self.classes_.tolist()}, got others in {unknown} rows; declare classes=(...)"
            )
        return found.argmax(axis=1).astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = len(self.classes) > 2
        tags.classifier_tags.poor_score = True
        return tags
