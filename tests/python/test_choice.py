"""Rules of choice as data: figures, prices, what is borne out, and how far a price may move."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from raidlab.api import analyse, choice_of, run_study, with_prices, write_report
from raidlab.cli.app import app
from raidlab.errors import InputError
from raidlab.published.quantities import KINDS, Reading, Source
from raidlab.published.quantities.kind import Kind
from raidlab.published.rules import choice_json, choice_text, load_choice, load_prices, make, make_choice
from raidlab.published.rules.make import CandidateFigures, Turn, _level_words
from raidlab.published.rules.plan import ChoicePlan, Rule
from raidlab.published.rules.text import turn_lines
from raidlab.results import Run, load_run
from raidlab.study import load_study
from raidlab.study.mapping import load_mapping
from raidlab.study.words import Table

STUDY = """
name = "choose"
title = "A disk or a mirror?"
on = ["sim"]

[[array]]
name = "one"
tree = "independent(1)"

[[array]]
name = "pair"
tree = "raid1(2)"

[[array]]
name = "never run"
tree = "raid0(3)"
on = ["emulated"]

[[workload]]
name = "reads"
read = 1.0
size = "4KiB"

[load]
depths = [4]

[policy]
mirror_read = "round_robin"

[sim]
device = "hdd-7200-bare"
measure = { requests = 1000 }
"""
PLAN = """
title = "Choice"
currency = "EUR"
dated = "2026-01"
[price]
disk = 100
mirroring = 40
[candidate]
one = { array = "one", numbers = { disks = 1, mirrored = 0 } }
pair = { array = "pair", numbers = { disks = 2, mirrored = 1 } }
gone = { array = "never run", numbers = { disks = 3, mirrored = 0 } }
[figure.speed]
title = "speed"
want = "most"
measure = { kind = "metric", metric = "iops", workload = "reads", at = "maximum" }
[figure.cost]
title = "cost"
unit = "EUR"
want = "least"
value = "disk * disks + mirrored * mirroring"
[figure.worth]
title = "worth"
want = "most"
value = "speed / cost"
[[rule]]
when = "Speed"
says = "a pair"
choose = ["pair"]
by = "speed"
[[rule]]
when = "Worth"
says = "a pair"
choose = ["pair"]
by = "worth"
[[rule]]
when = "Much worth"
says = "whichever"
choose = ["pair"]
by = "worth"
margin_percent = 50
[[rule]]
when = "A third"
says = "it"
choose = ["gone"]
by = "speed"
[[rule]]
when = "Half"
says = "half"
holds = "about(speed_one, speed_pair / 2, 10) and mirroring < disk"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("choice")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "choice.toml").write_text(PLAN, encoding="utf-8")
    return run_study(folder / "study.toml", out=folder / "runs")


def _study(run: Run) -> Path:
    return run.folder.parents[1] / "study.toml"


def test_disks_of_the_user_have_no_prices_of_the_study(run: Run, tmp_path: Path) -> None:
    own = load_run(run.folder)
    vars(own)["cells"] = run.cells.with_columns(target=pl.lit("live"))
    plan = load_choice(_study(run))
    found = make_choice(plan, analyse(own))
    assert found.target == "live" and found.prices == {}
    assert all(row.value("speed") and row.value("cost") is None for row in found.rows)
    assert [answer.verdict for answer in found.answers] == ["borne out", *["not answered"] * 4]
    unpriced = "Prices of disks of your own are not known; --prices FILE has them."
    assert [unpriced in answer.sentence for answer in found.answers] == [False, True, True, False, True]
    assert unpriced in choice_text(found)
    (tmp_path / "mine.toml").write_text('dated = "2026-11"\n[price]\ndisk = 50\n', encoding="utf-8")
    priced = make_choice(plan, analyse(own), load_prices(tmp_path / "mine.toml", plan))
    assert priced.prices == {"disk": 50, "mirroring": 40}, "one that is not named stays the study's, and is told to be"


def test_a_rule_names_the_arrays_that_it_lacks(run: Run) -> None:
    plan = load_choice(_study(run))
    rule = plan.rule[0].model_copy(update={"holds": "speed_one < speed_gone", "by": None, "choose": []})
    [answer] = make_choice(plan.model_copy(update={"rule": [rule]}), analyse(run)).answers
    assert (answer.verdict, answer.sentence) == ("not answered", "The run has no never run.")


@pytest.mark.parametrize(
    ("holds", "said"),
    [
        ("cost_pair < 200", "Cost: pair is 240 EUR, asked below 200 EUR."),
        ("cost_one - cost_pair > 0", "Cost: one less pair is -140 EUR, asked above 0 EUR."),
        ("disk < 50", "disk is 100"),
        # What is not above 0 has no share: the difference decides, and is told.
        ("cost_one - cost_pair > cost_one", "is -140 EUR"),
    ],
)
def test_a_rule_may_ask_for_a_bound_and_for_what_has_no_share(run: Run, holds: str, said: str) -> None:
    plan = load_choice(_study(run))
    rule = plan.rule[0].model_copy(update={"holds": holds, "by": None, "choose": []})
    [answer] = make_choice(plan.model_copy(update={"rule": [rule]}), analyse(run)).answers
    assert answer.verdict == "not borne out" and said.lower() in answer.sentence.lower(), answer.sentence


def test_rules_are_answered_with_what_was_run(run: Run) -> None:
    found = choice_of(run, _study(run))
    assert found is not None
    assert [answer.verdict for answer in found.answers] == [
        "borne out",
        "not borne out",
        "not told apart",
        "not answered",
        "borne out",
    ]
    assert found.missing == ["never run"]
    assert {row.name: row.value("cost") for row in found.rows} == {"one": 100, "pair": 240}
    text = choice_text(found)
    assert "NOT BORNE OUT. one (" in text and "Prices (the study's own; EUR, 2026-01)" in text
    assert json.loads(choice_json(found))["not_run"] == ["never run"]


class _Keys(Table):
    array: str
    figures: dict[str, list[float]]


PLANTED = """
title = "Choice"
[candidate]
a = { array = "one" }
b = { array = "pair" }
c = { array = "never run" }
[figure.time]
title = "time, of one"
unit = "ms"
want = "least"
measure = { kind = "planted", figures = { "one" = ONE, "pair" = PAIR, "never run" = [200, 202, 201] } }
[[rule]]
when = "Time"
says = "one"
choose = ["a"]
by = "time"
margin_percent = MARGIN
[[rule]]
when = "Share"
says = "less"
holds = "time_a / time_c < time_b / time_c"
sides = ["one", "the pair"]
"""


@pytest.mark.parametrize(
    ("one", "pair", "margin", "verdicts", "said"),
    [
        # Single runs: 103.7 against 105.6 is level, whoever is first.
        (
            [103.7],
            [105.6],
            1,
            ["not told apart"] * 2,
            "Not told apart by time (of one): one (103.7 ms), pair (105.6 ms).",
        ),
        ([105.6], [103.7], 1, ["not told apart"] * 2, "pair (103.7 ms), one (105.6 ms)."),
        ([100], [120], 1, ["borne out"] * 2, "one (100 ms) is first by time (of one); next is pair (120 ms)."),
        (
            [120],
            [100],
            1,
            ["not borne out"] * 2,
            "pair (100 ms) is first by time (of one); one (120 ms) is 20.0 % behind.",
        ),
        # Repeats: what scatters decides nothing, what does not decides little differences.
        ([100, 110, 90], [110, 100, 120], 1, ["not told apart"] * 2, "one (100 [75.16, 124.8] ms), pair"),
        ([100, 110, 90], [103, 113.2, 92.8], 1, ["borne out"] * 2, "next is pair (103"),
        # A margin holds however exactly the figures are known.
        (
            [100, 110, 90],
            [103, 113.2, 92.8],
            5,
            ["not told apart", "borne out"],
            "Level within 5 % by time (of one): one (100",
        ),
    ],
)
def test_a_rule_says_what_is_not_told_apart(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    one: list[float],
    pair: list[float],
    margin: int,
    verdicts: list[str],
    said: str,
) -> None:
    def planted(keys: _Keys, _source: Source) -> Reading:
        each = keys.figures[keys.array][: len(one)]
        return Reading(sum(each) / len(each), tuple(each))

    monkeypatch.setitem(KINDS, "planted", Kind("planted", "planted", _Keys, planted))
    file = run.folder.parents[1] / "planted" / "choice.toml"
    file.parent.mkdir(exist_ok=True)
    text = PLANTED.replace("ONE", str(one)).replace("PAIR", str(pair)).replace("MARGIN", str(margin))
    file.write_text(text, encoding="utf-8")
    found = make_choice(load_choice(file), analyse(run))
    assert [answer.verdict for answer in found.answers] == verdicts
    assert said in found.answers[0].sentence
    assert found.answers[1].sentence.startswith("One: 0.")


def test_what_is_level_by_a_margin_alone_is_not_called_not_told_apart() -> None:
    def level(*others: list[float]) -> str:
        rows = [
            CandidateFigures(str(number), "", {"time": Reading(sum(each) / len(each), tuple(each))})
            for number, each in enumerate([[100.0, 110.0, 90.0], *others])
        ]
        rule = Rule(when="Time", says="", choose=["0"], by="time", margin_percent=5)
        return _level_words(rows, rule)

    apart, noisy = [103.0, 113.2, 92.8], [120.0, 90.0, 120.0]
    assert level(noisy) == level([100.0, 111.0, 90.0]) == "not told apart"
    assert level(apart) == "level within 5 %"
    assert level(apart, noisy) == "level within 5 % or not told apart"


def test_sides_are_those_of_one_comparison(tmp_path: Path) -> None:
    holds = 'holds = "about(speed_one, speed_pair / 2, 10) and mirroring < disk"'
    (tmp_path / "choice.toml").write_text(PLAN.replace(holds, f'{holds}\nsides = ["a", "b"]'), encoding="utf-8")
    with pytest.raises(InputError, match=r"sides: .* names two sides, of which there are none"):
        load_choice(tmp_path / "study.toml")


def test_how_far_a_price_may_move(run: Run) -> None:
    found = choice_of(run, _study(run))
    assert found is not None
    turns = {(turn.figure, turn.price): turn for turn in found.turns}
    # A pair is twice as fast at least when mirroring is free: it never becomes worth more.
    assert ("worth", "disk") not in turns and ("cost", "mirroring") not in turns


@pytest.mark.parametrize(
    ("ends", "called", "said"),
    [
        ((0.7, 0.9), {}, "once mirroring is 32 (-20 %, 28 to 36)."),
        ((0.8, 0.8), {"mirroring": "a controller"}, "once a controller costs EUR 32 (-20 %)."),
        ((None, None), {"mirroring": "a controller"}, "once a controller costs EUR 32 (-20 %)."),
    ],
)
def test_another_price_is_told_with_what_it_is_of(
    run: Run, ends: tuple[float | None, float | None], called: dict[str, str], said: str
) -> None:
    found = choice_of(run, _study(run))
    assert found is not None
    plan = found.plan.model_copy(update={"called": called})
    turns = [Turn("cost", "mirroring", 0.8, "one", "pair", *ends)]
    assert turn_lines(replace(found, plan=plan, turns=turns)) == [f"By cost: pair comes before one {said}"]


def test_the_users_prices_are_kept_and_told(run: Run, tmp_path: Path) -> None:
    prices = tmp_path / "mine.toml"
    prices.write_text('dated = "2026-11"\ncurrency = "CHF"\n[price]\ndisk = 50\n', encoding="utf-8")
    with_prices(run, _study(run), prices)
    found = choice_of(run, _study(run))
    assert found is not None and (found.currency, found.dated, found.own_prices) == ("CHF", "2026-11", ("disk",))
    assert found.prices == {"disk": 50, "mirroring": 40}
    assert "yours, but mirroring of the study" in choice_text(found)
    plan = load_choice(_study(run))
    prices.write_text('dated = "2026-11"\n[price]\ndisks = 50\n', encoding="utf-8")
    with pytest.raises(InputError, match="did you mean 'disk'"):
        load_prices(prices, plan)
    prices.write_text("[price]\ndisk = 50\n", encoding="utf-8")
    with pytest.raises(InputError, match="dated"):
        load_prices(prices, plan)


def test_a_candidate_may_come_from_another_run(run: Run) -> None:
    analysis = analyse(run)
    found = make_choice(load_choice(_study(run)), analysis, others={"gone": (analysis, "one")})
    rows = {row.name: row for row in found.rows}
    assert rows["gone"].value("speed") == rows["one"].value("speed")
    assert rows["gone"].value("cost") == 300


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('value = "speed / cost"', 'value = "speed / costs"', "did you mean 'cost'"),
        ("[candidate]", '[called]\ndisks = "a disk"\n[candidate]', "did you mean 'disk'"),
        ('choose = ["gone"]', 'choose = ["went"]', "is not known"),
        ('by = "worth"\n[[', 'by = "wealth"\n[[', "is not known"),
        ('holds = "about', 'by = "cost"\nholds = "about', "either by or holds"),
        ('value = "disk * disks', 'measure = {}\nvalue = "disk * disks', "either measure or value"),
    ],
)
def test_mistakes_of_a_plan_are_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in PLAN
    (tmp_path / "choice.toml").write_text(PLAN.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=told):
        load_choice(tmp_path / "study.toml")


def test_the_report_ends_with_it(run: Run) -> None:
    from raidlab.report import write_page

    page = write_page(analyse(run), None, choice_of(run, _study(run))).read_text(encoding="utf-8")
    assert "not borne out" in page and "A third" in page
    rules = page[page.index('aria-label="Rules of choice"') :]
    assert rules.split("\n")[1] == '<table class="stacked">', "read downwards on a narrow page"
    assert 'fails" data-label="here">not borne out</td>' in rules
    assert write_report(run).is_file(), "a study that is not at hand by its name has no rules to ask"


def test_reasons_and_figures_of_the_studys_hardware_stand_on_no_other() -> None:
    mapping = load_mapping(load_study("hauser1996").file)
    one = mapping.quantities.conclusion["h96-simple-lowest-rate"]
    assert one.note == "" and one.why.startswith("a disk that holds a file alone")
    assert "5.9" not in mapping.quantities.conclusion["h96-max-throughput-vs-disk"].note


def test_the_rules_of_hauser1996_know_its_arrays() -> None:
    loaded = load_study("hauser1996")
    plan = load_choice(loaded.file)
    assert {one.array for one in plan.candidate.values()} <= {array.name for array in loaded.study.array}
    assert len(plan.rule) >= 6


def test_the_rules_of_a_study_are_not_asked_of_a_run_of_another(run: Run) -> None:
    def files() -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in run.folder.iterdir() if file.is_file()}

    before = files()
    result = CliRunner().invoke(app, ["study", "choice", "hauser1996", "--run", str(run.folder)])
    assert "is a run of 'choose'; accepted: a run of 'hauser1996'" in str(result.exception)
    assert files() == before, "its report is still its own"


_SMALL = """title = "t"
[candidate]
a = { array = "raid0" }
b = { array = "raid1" }
[figure.f0]
title = "x"
want = "least"
measure = { kind = "metric", metric = "iops", workload = "w", at = { depth = 4 } }
"""


def _plan(text: str, folder: Path) -> ChoicePlan:
    (folder / "choice.toml").write_text(text)
    return load_choice(folder / "study.toml")


def _next(name: str, value: str) -> str:
    return f'[figure.{name}]\ntitle = "x"\nwant = "least"\nvalue = "{value}"\n'


def test_figures_that_are_made_of_the_two_before_them_are_worked_out_once_each(tmp_path: Path) -> None:
    fibonacci = "".join(_next(f"f{n}", f"f{n - 1} + f{max(0, n - 2)} * p") for n in range(1, 60))
    plan = _plan(f"{_SMALL}{fibonacci}[price]\np = 1\n", tmp_path)
    before = time.process_time()
    assert plan.leading_to("f59") == [f"f{n}" for n in range(60)] and plan.prices_into("f59") == ["p"]
    assert plan.leading_to("f1") == ["f0", "f1"] and plan.prices_into("f0") == []
    measured = {name: {"f0": Reading(value)} for name, value in (("a", 1.0), ("b", 2.0))}
    assert make._turns(plan, measured, plan.price) == []
    assert make._is_measured(plan, "f59")
    assert time.process_time() - before < 10


def test_what_could_not_be_worked_out_in_seconds_is_refused(tmp_path: Path) -> None:
    chain = _SMALL + "".join(_next(f"f{n}", f"f{n - 1}") for n in range(1, 1500))
    prices = "[price]\n" + "".join(f"p{n} = 1\n" for n in range(150))
    each = _SMALL + "".join(_next(f"g{n}", f"f0 / p{n}") for n in range(150)) + prices
    every = _SMALL + "".join(_next(f"g{n}", " + ".join(f"p{p}" for p in range(150))) for n in range(150)) + prices
    assert _plan(each, tmp_path)
    for text, said in ((chain, "has too many figures"), (every, "need too many steps for other prices")):
        with pytest.raises(InputError, match=rf"choice\.toml: figure: \d+: {said}.*; accepted: at most \d+"):
            _plan(text, tmp_path)


def test_a_price_that_bears_the_name_of_a_later_figure_leads_to_no_circle(tmp_path: Path) -> None:
    plan = _plan(_SMALL + _next("g", "h * f0") + _next("h", "g") + "[price]\nh = 2\n", tmp_path)
    assert plan.leading_to("g") == ["f0", "g"] and plan.leading_to("h") == ["f0", "g", "h"]
    assert plan.prices_into("h") == ["h"] and make._is_measured(plan, "h")
