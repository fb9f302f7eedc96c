"""Attacks on what a plan claims: lower bounds on epsilon, sensitivity replay, and audits of the auditor.

Everything here runs on made-up neighbouring data sets, never on anybody's data.
"""

from discreet.audit import draws as _draws
from discreet.audit import scores as _scores
from discreet.audit import watched as _watched
from discreet.audit.bounds import Event, clopper_pearson, credible, gaussian_mu
from discreet.audit.membership import Found, attack, membership
from discreet.audit.null import Null, null
from discreet.audit.one_run import OneRun, judge_one_run, one_run
from discreet.audit.pairs import GAPS, random_pairs, worst_pair
from discreet.audit.replay import DISCLOSED, WATCHED, Moved, Replayed, sensitivity
from discreet.audit.subject import DRAWS, SCORES, Pair, Subject, draw_many, subject

__all__ = [
    "DISCLOSED",
    "DRAWS",
    "GAPS",
    "SCORES",
    "WATCHED",
    "Event",
    "Found",
    "Moved",
    "Null",
    "OneRun",
    "Pair",
    "Replayed",
    "Subject",
    "attack",
    "clopper_pearson",
    "credible",
    "draw_many",
    "gaussian_mu",
    "judge_one_run",
    "membership",
    "null",
    "one_run",
    "random_pairs",
    "sensitivity",
    "subject",
    "worst_pair",
]

_tables = _draws, _scores, _watched  # importing them fills the tables
