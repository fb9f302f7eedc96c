"""The models that a study file can name: a table, one row each."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from discreet.data import Category, Encoding, Integer, Ordinal, Real, Records
from discreet.data.columns import Column, Number
from discreet.data.encoding import target_column
from discreet.study.errors import Named, StudyError

if TYPE_CHECKING:
    from discreet.models.base import Model

MODELS: dict[str, type[ModelRow]] = {}
"""Name in the study file -> its settings, and how they become a model."""


class ModelRow(Named):
    """The settings of one model; a subclass with a name is in the table."""

    reads_features: ClassVar[bool] = True
    """Whether a record has features, or the target's value alone."""

    def __init_subclass__(cls, *, name: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if name is not None:
            cls.named, MODELS[name] = name, cls

    @abstractmethod
    def model(self, encoding: Encoding) -> Model:
        """The model of the records that `encoding` makes."""

    def records(self, encoded: Records) -> Records:
        """Encoded columns as the model calls them."""
        return encoded


def target(encoding: Encoding, kinds: type[Column] | tuple[type[Column], ...], wanted: str) -> Column:
    """The column of the target, which must be of one of these kinds and whole."""
    assert encoding.target is not None  # noqa: S101  # `Study` asks for one
    name, threshold = target_column(encoding.schema, encoding.target)
    column = encoding.schema.columns[name]
    if threshold is not None or not isinstance(column, kinds):
        given = f"a threshold on {name}" if threshold is not None else f"{name} of kind {column.kind}"
        raise StudyError(
            f"data.target: the model needs {wanted}, got {given}; choose another target or model"
        )
    return column


def two_valued(encoding: Encoding) -> None:
    """Refuse a target that is not one of two values."""
    assert encoding.target is not None  # noqa: S101  # `Study` asks for one
    if target_column(encoding.schema, encoding.target)[1] is None:
        column = target(encoding, Category, "a target of two values, or a threshold such as 'age >= 65'")
        if classes(column) != 2:
            raise StudyError(
                f"data.target: the model needs a target of two values, got {classes(column)}; "
                "take SoftmaxRegression, or a threshold on a number"
            )


def classes(column: Column) -> int:
    """How many values a target takes."""
    assert isinstance(column, Category)  # noqa: S101  # `target` asked for one
    return len(column.values) + (column.missing == "category" and not isinstance(column, Ordinal))


def limits(encoding: Encoding) -> tuple[float, float]:
    """The declared bounds of a target."""
    column = target(encoding, Real, "a target of numbers")
    assert isinstance(column, Real)  # noqa: S101  # for the type checker
    return column.lower, column.upper


# --- regressions -------------------------------------------------------------------


class LogisticRow(ModelRow, name="LogisticRegression"):
    """P(y = 1) from features; the second value of the target is 1."""

    prior_precision: Number = 1.0

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import LogisticRegression

        two_valued(encoding)
        return LogisticRegression(len(encoding.features), encoding.row_norm, self.prior_precision)


class ProbitRow(ModelRow, name="ProbitRegression"):
    """P(y = 1) from features, by the normal distribution function."""

    prior_precision: Number = 1.0

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import ProbitRegression

        two_valued(encoding)
        return ProbitRegression(len(encoding.features), self.prior_precision)


class SoftmaxRow(ModelRow, name="SoftmaxRegression"):
    """The probability of each value of a category from features."""

    prior_precision: Number = 1.0

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import SoftmaxRegression

        number = classes(target(encoding, Category, "a target of declared values"))
        return SoftmaxRegression(len(encoding.features), number, encoding.row_norm, self.prior_precision)


class LinearRow(ModelRow, name="LinearRegression"):
    """A number from features, in the target's own units."""

    coefficient_variance: Number = 9.0
    lower_variance: Number = 0.01
    variance_shape: Number = 1.0
    variance_scale: Number = 1.0

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import LinearRegression

        limits(encoding)
        return LinearRegression(len(encoding.features), **self.model_dump())


class PoissonRow(ModelRow, name="PoissonRegression"):
    """A count from features."""

    prior_precision: Number = 1.0
    log_rate_limit: Number = 15.0
    typical_rate: Number = 1.0

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import PoissonRegression

        counts(encoding)
        return PoissonRegression(len(encoding.features), **self.model_dump())


# --- one column --------------------------------------------------------------------


class FamilyRow(ModelRow):
    """A conjugate family, whose record is the target's value."""

    reads_features: ClassVar[bool] = False

    def records(self, encoded: Records) -> Records:
        return Records({"x": encoded["y"]}, ())


class BetaBernoulliRow(FamilyRow, name="BetaBernoulli"):
    """How often the target has the second of its two values; prior = [successes, failures]."""

    prior: list[Number] = Field(default=[1.0, 1.0], min_length=2, max_length=2)

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import BetaBernoulli

        two_valued(encoding)
        return BetaBernoulli((self.prior[0], self.prior[1]))


class DirichletRow(FamilyRow, name="DirichletCategorical"):
    """How often the target has each of its values; the prior has one concentration for each."""

    prior: list[Number] | None = None

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import DirichletCategorical

        number = classes(target(encoding, Category, "a target of declared values"))
        prior = self.prior if self.prior is not None else [1.0] * number
        if len(prior) != number:
            raise StudyError(
                f"model.prior: the target has {number} values, got {len(prior)} concentrations; give {number}"
            )
        return DirichletCategorical(tuple(prior))


class GammaPoissonRow(FamilyRow, name="GammaPoisson"):
    """The rate of a count up to its declared upper bound; prior = [shape, rate]."""

    prior: list[Number] = Field(min_length=2, max_length=2)

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import GammaPoisson

        return GammaPoisson((self.prior[0], self.prior[1]), largest=counts(encoding))


class NormalRow(FamilyRow, name="NormalKnownVariance"):
    """The mean of a number within its declared bounds; prior = [mean, variance] of that mean."""

    prior: list[Number] = Field(min_length=2, max_length=2)
    variance: Number

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import NormalKnownVariance

        prior = (self.prior[0], self.prior[1])
        return NormalKnownVariance(prior, variance=self.variance, limits=limits(encoding))


class NormalInverseGammaRow(FamilyRow, name="NormalInverseGamma"):
    """Mean and variance of a number within its declared bounds; prior = [centre, worth, shape, rate]."""

    prior: list[Number] = Field(min_length=4, max_length=4)

    def model(self, encoding: Encoding) -> Model:
        from discreet.models import NormalInverseGamma

        centre, worth, shape, rate = self.prior
        return NormalInverseGamma((centre, worth, shape, rate), limits=limits(encoding))


def counts(encoding: Encoding) -> int:
    """The largest count of a target, declared."""
    column = target(encoding, Integer, "a target of whole numbers from 0")
    assert isinstance(column, Integer)  # noqa: S101  # for the type checker
    if column.lower < 0:
        raise StudyError(f"data.target: the model needs counts from 0, got the lower bound {column.lower:g}")
    return int(column.upper)
