"""Guarantees: what differential privacy a mechanism has, what several have together, what a budget allows.

Usable on its own: no JAX, no models. Every function takes its neighbour relation
by name, every answer is an upper bound, and every rule has a proof page under
docs/proofs/.
"""

from discreet.privacy.attacker import attacker_success, attacker_words, percent
from discreet.privacy.barker_chains import barker, barker_full_data
from discreet.privacy.bayesian import BayesianAccountant
from discreet.privacy.bayesian_loss import BayesianLoss
from discreet.privacy.bayesian_people import PeopleCosts
from discreet.privacy.bayesian_published import PublishedBayesianAccountant
from discreet.privacy.budget import Budget
from discreet.privacy.calibrate import BudgetError, Calibration, calibrate
from discreet.privacy.comparison import Approximation, gdp_central_limit
from discreet.privacy.conjugate import gamma_poisson, normal_inverse_gamma, normal_mean
from discreet.privacy.constructors import (
    approximate,
    beta_bernoulli,
    bounded_range,
    classical_epsilon,
    dirichlet_categorical,
    gaussian,
    inexact,
    laplace,
    normals,
    nothing,
    poisson_gaussian,
    profile,
    pure,
    renyi,
    sampled_without_replacement,
    strongly_convex_posterior,
    zcdp,
)
from discreet.privacy.evidence import Evidence, Standing
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.observer import ObservedRun, Observer, independent_pairs
from discreet.privacy.sensitive import Sensitive

__all__ = [
    "Approximation",
    "BayesianAccountant",
    "BayesianLoss",
    "Budget",
    "BudgetError",
    "Calibration",
    "Evidence",
    "Guarantee",
    "Neighbours",
    "ObservedRun",
    "Observer",
    "PeopleCosts",
    "PublishedBayesianAccountant",
    "Sensitive",
    "Standing",
    "approximate",
    "attacker_success",
    "attacker_words",
    "barker",
    "barker_full_data",
    "beta_bernoulli",
    "bounded_range",
    "calibrate",
    "classical_epsilon",
    "dirichlet_categorical",
    "gamma_poisson",
    "gaussian",
    "gdp_central_limit",
    "independent_pairs",
    "inexact",
    "laplace",
    "normal_inverse_gamma",
    "normal_mean",
    "normals",
    "nothing",
    "percent",
    "poisson_gaussian",
    "profile",
    "pure",
    "renyi",
    "sampled_without_replacement",
    "strongly_convex_posterior",
    "zcdp",
]
