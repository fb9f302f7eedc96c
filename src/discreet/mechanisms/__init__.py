"""One file per published mechanism, named as the literature names it."""
