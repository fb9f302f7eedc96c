"""The skeleton of a report: one HTML file with its style inside, no script, no request.

It follows the reader's light or dark theme, reads on a phone and in print, and passes
axe-core. The content security policy in its head forbids what is not there anyway.
Everything escapes: only what these functions made, `Html`, goes onto a page as it is.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_STYLE = Path(__file__).with_name("page.css")


class Html(str):
    """Markup, made by the functions of this module; any other string is escaped."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str) -> Html:
    """<tag ...>content</tag>; an underscore in an attribute's name is a hyphen, at its end nothing."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for name, value in attributes.items()
    )
    return Html(f"<{tag}{named}>{join(*content)}</{tag}>")


def join(*parts: str) -> Html:
    """Parts, one after the other, those that are no markup escaped."""
    return Html("".join(part if isinstance(part, Html) else html.escape(part) for part in parts))


def paragraph(*content: str, class_: str | None = None) -> Html:
    """A paragraph."""
    return element("p", *content, **({"class_": class_} if class_ else {}))


def items(*content: str) -> Html:
    """A bulleted list."""
    return element("ul", *(element("li", item) for item in content))


def headline(*facts: tuple[str, str]) -> Html:
    """A few large values, each with what it is."""
    cells = (element("li", element("b", value), element("span", name)) for value, name in facts)
    return element("ul", *cells, class_="headline")


def facts(pairs: Sequence[tuple[str, str]]) -> Html:
    """Names and what they are, one below the other."""
    rows = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *rows)


def code(content: str) -> Html:
    """Lines to copy."""
    return element("pre", element("code", content))


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    stacked: bool = False,
) -> Html:
    """A table that scrolls sideways where it is too wide; the first cell of a row is its header.

    Args:
        caption: what it shows.
        columns: their titles.
        rows: their cells.
        numbers: which columns hold numbers.
        stacked: on a phone, whether cells stand below each other; for cells of many words.
    """
    align = [{"class_": "number"} if k in numbers else {} for k in range(len(columns))]
    head = (element("th", title, scope="col", **a) for title, a in zip(columns, align, strict=True))
    body = (
        element(
            "tr",
            element("th", row[0], scope="row", **align[0]),
            *(element("td", cell, **a) for cell, a in zip(row[1:], align[1:], strict=True)),
        )
        for row in rows
    )
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *body),
        **({"class_": "stacked"} if stacked else {}),
    )
    return element("div", whole, class_="scroll", role="region", tabindex="0", aria_label=caption)


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading.
        anchor: its id, for links.
        body: what follows the heading.
    """

    title: str
    anchor: str
    body: Sequence[Html]

    def html(self) -> Html:
        """The section with its heading."""
        heading = element("h2", self.title, id=self.anchor)
        return element("section", heading, *self.body, aria_labelledby=self.anchor)


def page(
    title: str, *, kind: str, lead: Sequence[Html], sections: Sequence[Section], footer: Sequence[Html] = ()
) -> str:
    """The whole file.

    Args:
        title: of the page.
        kind: a few words over the title, such as "Private release".
        lead: what stands between the title and the first section.
        sections: the rest.
        footer: small print.
    """
    contents = (element("li", element("a", s.title, href=f"#{s.anchor}")) for s in sections)
    body = join(
        element("header", paragraph(kind, class_="kind"), element("h1", title), *lead),
        element("nav", element("ol", *contents), aria_label="Contents"),
        element("main", *(section.html() for section in sections)),
        element("footer", *footer),
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="discreet">
<link rel="icon" href="data:,">
<title>{join(title)}</title>
<style>
{_STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
{body}
</body>
</html>
"""
