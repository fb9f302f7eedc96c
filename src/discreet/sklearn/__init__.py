"""scikit-learn estimators whose `fit` spends a budget once and releases private coefficients."""

from discreet.sklearn.classifier import PrivateLogisticRegression
from discreet.sklearn.networks import PrivateMLPClassifier, PrivateMLPRegressor
from discreet.sklearn.regressor import PrivateRegressor
from discreet.sklearn.scaler import BoundedScaler

__all__ = [
    "BoundedScaler",
    "PrivateLogisticRegression",
    "PrivateMLPClassifier",
    "PrivateMLPRegressor",
    "PrivateRegressor",
]
