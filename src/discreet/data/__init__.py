"""Tables as models take them: public schemas, readers, encoding by declared bounds, the papers' data sets."""

from discreet.data.columns import Binary, Category, Integer, Ordinal, Real
from discreet.data.encoding import Encoding, Records
from discreet.data.errors import DataError, SchemaError
from discreet.data.papers import Dataset, load, names
from discreet.data.schema import Schema
from discreet.data.stored import StoredRecords
from discreet.data.synthetic import synthetic_clinic

__all__ = [
    "Binary",
    "Category",
    "DataError",
    "Dataset",
    "Encoding",
    "Integer",
    "Ordinal",
    "Real",
    "Records",
    "Schema",
    "SchemaError",
    "StoredRecords",
    "load",
    "names",
    "synthetic_clinic",
]
