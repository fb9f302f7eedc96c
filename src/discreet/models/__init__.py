"""Likelihoods and priors with proven bounds per record."""

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.bounded_response import TruncatedGammaRegression, TruncatedPoissonRegression
from discreet.models.families import (
    BetaBernoulli,
    ConjugateFamily,
    DirichletCategorical,
    GammaPoisson,
    NormalInverseGamma,
    NormalKnownVariance,
)
from discreet.models.flax_network import FlaxNetwork
from discreet.models.gaussian_mixture import GaussianMixture
from discreet.models.linear import LinearRegression
from discreet.models.logistic import LogisticRegression
from discreet.models.losses import BetaDivergence, ClippedGibbs, Gibbs, Loss
from discreet.models.network_outcomes import Categories, Number, NumberAndSpread, Yes
from discreet.models.neural_network import NeuralNetwork
from discreet.models.neural_regression import NeuralClassification, NeuralRegression
from discreet.models.numpyro_model import NumPyroModel, from_numpyro
from discreet.models.poisson import PoissonRegression
from discreet.models.priors import FlatPrior, GaussianPrior, LaplacePrior
from discreet.models.probit import ProbitRegression
from discreet.models.softmax import SoftmaxRegression

__all__ = [
    "BetaBernoulli",
    "BetaDivergence",
    "Bound",
    "Categories",
    "ClippedGibbs",
    "ConjugateFamily",
    "DirichletCategorical",
    "FlatPrior",
    "FlaxNetwork",
    "GammaPoisson",
    "GaussianMixture",
    "GaussianPrior",
    "Gibbs",
    "LaplacePrior",
    "LinearRegression",
    "LogisticRegression",
    "Loss",
    "Model",
    "NeuralClassification",
    "NeuralNetwork",
    "NeuralRegression",
    "NormalInverseGamma",
    "NormalKnownVariance",
    "NumPyroModel",
    "Number",
    "NumberAndSpread",
    "PoissonRegression",
    "ProbitRegression",
    "Records",
    "SoftmaxRegression",
    "Theta",
    "TruncatedGammaRegression",
    "TruncatedPoissonRegression",
    "Yes",
    "from_numpyro",
]
