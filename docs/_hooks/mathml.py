"""MkDocs hook: formulas become MathML while the pages are built; readers need no script and no network."""

import re
from html import unescape

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# What pymdownx.arithmatex (generic: true) makes of $...$ and of $$...$$.
_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
# latex2mathml passes on what it does not know: a command by its name, an alignment as a bare &.
_UNKNOWN = re.compile(r"\\[A-Za-z]+|&(?=</)")
# What it draws wrongly, or knows under another name only: corrections of its input and of its output.
_BEFORE = (
    (r"\\(begin|end)\{aligned\}", r"\\\1{split}"),
    (r"(?<!\\left)\\l([Vv])ert(?![A-Za-z])", r"\\left\\l\1ert"),
    (r"(?<!\\right)\\r([Vv])ert(?![A-Za-z])", r"\\right\\r\1ert"),
)
_BEFORE_BLOCK = ((r"\\(max|min|sup|inf)(?=\s*_)", r"\\\1\\limits"),)
_AFTER = (
    ("<mi>&#x02032;</mi>", "<mo>&#x02032;</mo>"),  # prime
    ("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>"),  # sim
)
# An example that the tests do not run (tests/docs) is marked ```python notest; readers need not see the mark.
_NOTEST = re.compile(r"^(\s*```python) notest\s*$", re.MULTILINE)


def _mathml(formula: re.Match[str], page: str) -> str:
    block = formula["tag"] == "div"
    latex = unescape(formula["latex"]).strip()
    source = latex
    for pattern, replacement in _BEFORE + (_BEFORE_BLOCK if block else ()):
        source = re.sub(pattern, replacement, source)
    try:
        rendered = convert(source, display="block" if block else "inline")
    except Exception as error:
        raise PluginError(f"{page}: formula {latex!r} is refused: {type(error).__name__} {error}") from error
    unknown = re.search(r"\\operatorname\*", source) or _UNKNOWN.search(rendered)
    if unknown:
        raise PluginError(
            f"{page}: formula {latex!r} has {unknown[0]}, unknown to latex2mathml; write it otherwise."
        )
    for identifier, operator in _AFTER:
        rendered = rendered.replace(identifier, operator)
    return f'<div class="formula">{rendered}</div>' if block else rendered


def on_page_markdown(markdown: str, **_: object) -> str:
    """Hide the notest marks."""
    return _NOTEST.sub(r"\1", markdown)


def on_page_content(html: str, *, page: object, **_: object) -> str:
    """Render every formula of a page, those of docstrings included."""
    return _FORMULA.sub(lambda formula: _mathml(formula, str(page)), html)
