"""Study files: what is asked of which table, at what price, in one TOML file that names no person's data."""

from discreet.study.errors import StudyError
from discreet.study.mechanisms import MECHANISMS
from discreet.study.models import MODELS
from discreet.study.study import Study, load

__all__ = ["MECHANISMS", "MODELS", "Study", "StudyError", "load"]
