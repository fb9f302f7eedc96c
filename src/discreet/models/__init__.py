"""Likelihoods and priors with proven bounds per record."""

from discreet.models.base import Bound, Model, Records, Theta
from discreet.models.logistic import LogisticRegression

__all__ = ["Bound", "LogisticRegression", "Model", "Records", "Theta"]
