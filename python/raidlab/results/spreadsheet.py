"""Texts as cells of a CSV file that somebody may open in a spreadsheet."""

from __future__ import annotations

# What a spreadsheet takes for the beginning of a formula, also after it has dropped the tab or the line end.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_text(text: str) -> str:
    """A text that no spreadsheet works out: with an apostrophe before what would be a formula.

    Examples
    --------
    >>> spreadsheet_text("=HYPERLINK(A1)"), spreadsheet_text("-5"), spreadsheet_text("-"), spreadsheet_text("raid5")
    ("'=HYPERLINK(A1)", '-5', '-', 'raid5')
    """
    if len(text) < 2 or not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
