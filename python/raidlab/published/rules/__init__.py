"""Choice: the rules by which a study chooses an arrangement, answered with the figures of a run and the user's prices.

Invariants:

- Which candidates there are, what they are judged by and what the rules say is data: ``choice.toml`` of the study; what
  things cost is data of the study or of the user. No study is known by name.
- A rule is answered with the run's own figures, and says so when they do not bear it out. What was not run is not
  guessed.
- Nothing here measures.

Reference: S. Hauser, L. Berman, G. Thoma, *Is the bang worth the buck?*, 1996 ("Configuration selection").
"""

from raidlab.published.rules.make import Choice, RuleAnswer, make_choice
from raidlab.published.rules.plan import ChoicePlan, has_choice, load_choice
from raidlab.published.rules.prices import keep_prices, kept_prices, load_prices
from raidlab.published.rules.text import choice_json, choice_text

__all__ = [
    "Choice",
    "ChoicePlan",
    "RuleAnswer",
    "choice_json",
    "choice_text",
    "has_choice",
    "keep_prices",
    "kept_prices",
    "load_choice",
    "load_prices",
    "make_choice",
]
