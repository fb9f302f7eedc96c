"""Posterior samplers without privacy of their own; each returns draws and evidence of exactness."""

from discreet.samplers.randomness import Randomness

__all__ = ["Randomness"]
