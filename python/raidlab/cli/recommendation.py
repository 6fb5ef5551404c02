"""A recommendation in a terminal of 80 columns.

Invariant: nothing is worked out here but wording; the page says the same.
"""

from __future__ import annotations

from raidlab.results.recommendation import (
    SIMULATED_TOOL,
    TOO_SLOW,
    Recommendation,
    RecommendedArray,
    front_title,
    front_words,
    hours_words,
    money_words,
    relaxations_title,
    size_words,
    too_slow_words,
)
from raidlab.study.units import format_number
from raidlab.wrapping import WIDTH, wrapped

_MOST_ROWS = 8


def print_recommendation(answer: Recommendation) -> None:
    """The answer, the ranking, what would change it, what was dropped, and how to build it."""
    for line in (*wrapped(answer["sentence"]), ""):
        print(line)
    for title, items in (("needed", answer["needs"]), ("work", answer["work"])):
        print("\n".join(wrapped(f"{title}: {'; '.join(items)}", hanging=2)))
    print()
    _print_ranking(answer)
    _print_front(answer)
    _print_changes(answer)
    if answer["dropped"]:
        told = "; ".join(f"{one['rule']}: {one['arrays']}" for one in answer["dropped"])
        head = f"Left out, of {answer['looked_at']} arrays that could be built, each by its first reason"
        print("\n".join(wrapped(f"{head}: {told}.", hanging=2)))
    _print_list(f"{TOO_SLOW}:", too_slow_words(answer))
    for tool, lines in answer["commands"].items():
        print(f"\n{tool} ({'' if tool == SIMULATED_TOOL else 'a layout of its own, not simulated; '}printed, not run):")
        for line in lines:
            print("\n".join(_continued(line)))
    if answer["commands"]:
        print()
    for told in answer["basis"]:
        print("\n".join(wrapped(told, hanging=2)))


def _print_ranking(answer: Recommendation) -> None:
    rows = [one for one in answer["arrays"] if one["verdict"] == "meets"][:_MOST_ROWS]
    near = [one for one in answer["arrays"] if one["verdict"] == "not decided"][:2]
    if not rows and not near:
        return
    has_cost, has_loss = answer["has_prices"], any(one["loss_per_year"] is not None for one in rows)
    keys = answer["percentiles"][:2]
    has_rebuild = any(one["figures"] is not None and one["figures"]["rebuild_hours"] is not None for one in rows)
    heads = ["dsk", *(["cost"] if has_cost else []), "space", "IOPS", "95 %", *(f"{_short(key)} ms" for key in keys)]
    heads += [*(["rebuild"] if has_rebuild else []), *(["loss/yr"] if has_loss else [])]
    table = [["", *heads]]
    for one in [*rows, *near]:
        table.append([_label(one), *_cells(one, keys, has_cost=has_cost, has_rebuild=has_rebuild, has_loss=has_loss)])
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    room = WIDTH - sum(widths[1:]) - len(widths) + 1
    for row in table:
        figures = " ".join(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        # A name too long for its column has a line of its own.
        if len(row[0]) > room:
            print(row[0])
        first = f"{row[0] if len(row[0]) <= room else '':<{min(widths[0], room)}}"
        print(f"{first} {figures}".rstrip())
    rebuild = " rebuild: of a whole disk, at the rate with which it begins." if has_rebuild else ""
    for line in wrapped(f"IOPS: {answer['figure']}.{rebuild}{_marks(rows, near)}", hanging=2):
        print(line)
    told = [f"{one['name']}: {one['against_first']}" for one in rows if one["against_first"]]
    if told:
        print("\n".join(wrapped(f"Against the first, same fresh seeds: {'; '.join(told)}.", hanging=2)))
    print()


def _print_front(answer: Recommendation) -> None:
    lines = front_words(answer)
    if not lines:
        return
    print(f"{front_title(answer)}:")
    for line in lines:
        print("\n".join(wrapped(line, indent=2, hanging=4)))
    print()


def _marks(rows: list[RecommendedArray], near: list[RecommendedArray]) -> str:
    found = ""
    if any(one["figures"] is not None and one["figures"]["requests_per_s_interval"] is None for one in [*rows, *near]):
        found += " Without an interval: of the search alone."
    if any(one["is_tied"] for one in rows):
        found += " '=': not told apart from the first."
    if any(one["rank"] is None for one in rows):
        found += " '-': meets the goals; not ordered."
    if near:
        found += " '?': not decided, as it is near to a goal or had too few runs."
    return found


def _label(one: RecommendedArray) -> str:
    mark = "?" if one["verdict"] == "not decided" else "=" if one["is_tied"] else str(one["rank"] or "-")
    return f"{mark:>2} {one['name']}"


def _short(key: str) -> str:
    """A percentile as the head of a column has it."""
    return key.replace("degraded", "degr.").replace("rebuilding", "reb.")


def _cells(one: RecommendedArray, keys: list[str], *, has_cost: bool, has_rebuild: bool, has_loss: bool) -> list[str]:
    figures = one["figures"]
    cells = [str(one["disks"]), *([money_words(one["cost"] or 0.0)] if has_cost else []), size_words(one["user_bytes"])]
    if figures is None:
        return [*cells, "-", "", *("-" for _ in (*keys, *([1] if has_rebuild else ()), *([1] if has_loss else ())))]
    interval = figures["requests_per_s_interval"]
    cells += [f"{figures['requests_per_s']:,.0f}"]
    cells += ["" if interval is None else f"{interval[0]:,.0f}-{interval[1]:,.0f}"]
    cells += [format_number(figures["within_ms"][key]) for key in keys]
    if has_rebuild:
        hours = figures["rebuild_hours"]
        cells.append("-" if hours is None else hours_words(hours))
    if has_loss:
        loss = one["loss_per_year"]
        cells.append("-" if loss is None else f"{loss:.1e}")
    return cells


def _print_changes(answer: Recommendation) -> None:
    if answer["turns"]:
        print(f"{answer['answer']} stays the answer unless:")
        for turn in answer["turns"]:
            print("\n".join(wrapped(turn["words"], indent=2, hanging=4)))
    _print_list("It stays the answer for", answer["unturned"])
    _print_list("Not looked at:", answer["unseen"])
    if answer["turns"]:
        print()
    if not answer["relaxations"]:
        return
    print("\n".join(wrapped(f"{relaxations_title(answer)}:")))
    for one in answer["relaxations"]:
        gain = f", {one['gain']}" if one["gain"] else ""
        print("\n".join(wrapped(f"{one['words']}: {one['admits']}{gain}", indent=2, hanging=4)))
    print()


def _print_list(title: str, items: list[str]) -> None:
    """One thing in the title's sentence, several below it."""
    if len(items) == 1:
        print("\n".join(wrapped(f"{title} {items[0]}.", hanging=2)))
    elif items:
        print(f"{title.removesuffix(':')}:")
        for item in items:
            print("\n".join(wrapped(item, indent=2, hanging=4)))


def _continued(command: str) -> list[str]:
    """A command in lines that a shell reads as one."""
    lines = wrapped(command, width=77, indent=2, hanging=4)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]
