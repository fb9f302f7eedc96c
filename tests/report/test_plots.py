"""What the plots show, read back off the axes."""

from typing import Any

import numpy as np
import pytest

from discreet.metrics import Reliability
from discreet.models.prediction import Prediction
from discreet.report import plots


def reliability() -> Reliability:
    p = np.array([[0.9, 0.1]] * 40 + [[0.55, 0.45]] * 10)
    y = np.array([0] * 30 + [1] * 10 + [0] * 10)
    return Reliability.of(y, p, bins=10)


def heights(axes: Any) -> list[float]:
    return [round(float(bar.get_height()), 4) for bar in axes.patches]


def test_a_reliability_diagram_has_accuracy_and_gap_of_full_bins() -> None:
    axes = plots.reliability_diagram(reliability())
    assert heights(axes) == [1.0, 0.75, -0.45, 0.15]
    assert [bar.get_alpha() for bar in axes.patches] == [0.35, 1.0, 0.35, 1.0]  # 10 predictions are few
    assert "ECE 0.210\nMCE 0.450" in [text.get_text() for text in axes.texts]


def test_a_confidence_histogram_adds_up_and_shows_both_means() -> None:
    axes = plots.confidence_histogram(reliability())
    assert sum(heights(axes)) == pytest.approx(1)
    words = [text.get_text() for text in axes.get_legend().get_texts()]  # pyright: ignore[reportOptionalMemberAccess]
    assert words == ["accuracy 0.800", "mean confidence 0.830"]


def test_a_draw_distribution_counts_every_draw_once_per_label() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    axes = plots.draw_distribution(p, bins=5, labels=["a", "b", "c"])
    assert len(axes.patches) == 15
    assert np.reshape(heights(axes), (3, 5)).sum(axis=1).tolist() == [50, 50, 50]


def test_a_prediction_band_holds_epistemic_inside_total_in_order_of_x() -> None:
    prediction = Prediction(np.array([1.0, 0.0]), np.array([0.25, 1.0]), np.array([2.0, 3.0]))
    axes = plots.prediction_band([1.0, 0.0], prediction)
    np.testing.assert_array_equal(np.asarray(axes.lines[0].get_xdata()), [0, 1])
    outer, inner = (band.get_paths()[0].get_extents() for band in axes.collections)
    assert (outer.y0, outer.y1) == (-4, 4)
    assert (inner.y0, inner.y1) == (-2, 2)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="axes draw and label"):
        plots.draw_distribution([0.5, 0.5])
    with pytest.raises(ValueError, match="labels must name all 2"):
        plots.draw_distribution([[0.5, 0.5]], labels=["a"])
    categories = Prediction(np.full((2, 3), 1 / 3), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="x must have one value for each of the 2 means"):
        plots.prediction_band([0.0, 1.0], categories)
