"""Exponential families with their conjugate priors, one file each.

A new family is one file that subclasses `ConjugateFamily`, and one test class that
inherits the contract in tests/models/family_contract.py.
"""

from discreet.models.families.base import ConjugateFamily, FamilyDraws
from discreet.models.families.beta_bernoulli import BetaBernoulli
from discreet.models.families.dirichlet_categorical import DirichletCategorical
from discreet.models.families.gamma_poisson import GammaPoisson
from discreet.models.families.normal_inverse_gamma import NormalInverseGamma
from discreet.models.families.normal_known_variance import NormalKnownVariance

__all__ = [
    "BetaBernoulli",
    "ConjugateFamily",
    "DirichletCategorical",
    "FamilyDraws",
    "GammaPoisson",
    "NormalInverseGamma",
    "NormalKnownVariance",
]
