"""The options of analyses, each declared once, as those of judging are in `options`: flags of the
command, fields of HTTP clients and the arguments of Python callers derive from these rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from evenhand.contract import Locale
from evenhand.options import Option, Options

Side = Literal["A", "B"]
Ties = Literal["half", "excluded", "wins"]
Missing = Literal["against", "half"]
# auto: chosen by labels, and plurality where there are none, or too few.
Weights = Literal["auto", "plurality", "majority", "learned"]


# In `--help`, and open to clients of a server, as nearly all of these are.
_offered = partial(Option, common=True, clients=True)


@dataclass(frozen=True, kw_only=True)
class LevelOption(Options):
    level: Annotated[
        float,
        _offered(help="The confidence level of the intervals.", default="0.95", above=0, most=1),
    ] = 0.95


@dataclass(frozen=True, kw_only=True)
class JudgeOption(Options):
    judge: Annotated[
        str | None,
        _offered(help="The judge, if the run has several.", short="-j", names="judge"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SideOption(Options):
    side: Annotated[
        Side,
        _offered(help="Whose win rate to report; B is usually the new one.", default="B"),
    ] = "B"


@dataclass(frozen=True, kw_only=True)
class TiesOption(Options):
    ties: Annotated[
        Ties,
        _offered(
            help="Count ties as half, exclude them, or count outright wins only.", default="half"
        ),
    ] = "half"


@dataclass(frozen=True, kw_only=True)
class LabelsOption(Options):
    labels_are: Annotated[
        Literal["random"] | None,
        _offered(
            help="random: you vouch that the data's labels, and votes without a recorded draw, "
            "are on randomly drawn pairs."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OneOrderOption(Options):
    allow_one_order: Annotated[
        bool,
        _offered(
            help="Also use pairs judged in one fixed order, although position may decide them."
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class ClaimOptions(OneOrderOption, LabelsOption, TiesOption, SideOption):
    """Whose win rate it is, how it is counted, and what may be concluded from it."""

    max_invalid: Annotated[
        float | None,
        _offered(
            help="Conclude nothing if a larger share of pairs has no valid verdict. Below that "
            "they count against the claim.",
            least=0,
            most=1,
        ),
    ] = None
    max_skipped: Annotated[
        float | None,
        _offered(
            help="The same limit for rows that were skipped or have no counterpart.",
            least=0,
            most=1,
        ),
    ] = None
    missing: Annotated[
        Missing | None,
        _offered(
            help="How to count pairs without a verdict: against the claim (default), or half if "
            "you vouch that they are like the others."
        ),
    ] = None
    allow_length: Annotated[
        bool,
        _offered(
            help="Conclude even if longer responses win and no difference shows at equal length."
        ),
    ] = False
    smallest_effect: Annotated[
        float | None,
        _offered(
            help="The smallest difference from 0.5 that matters, e.g. 0.02; reports whether it "
            "is shown, ruled out or open.",
            above=0,
            most=0.5,
        ),
    ] = None
    growing: Annotated[
        bool,
        _offered(
            help="More data will follow: use intervals that stay valid however often you look."
        ),
    ] = False
    topic: Annotated[
        str | None,
        _offered(
            help="The tag column with each pair's topic: claims must generalise beyond these "
            "topics. Default: the only tag column, if its topics differ.",
            metavar="COLUMN",
        ),
    ] = None
    these_topics: Annotated[
        bool,
        _offered(help="Limit the claim to these topics, even if topics differ."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ClaimOptions, LevelOption):
    """Whose win rate a report is about, how it is counted, and what may be concluded from it."""


FlowEnd = Literal["A", "tie", "inconsistent", "B", "invalid"]


@dataclass(frozen=True, kw_only=True)
class DiffOptions(OneOrderOption, LevelOption):
    """Which judges are compared, and which of the pairs to show; without a choice, all that
    changed."""

    judge: Annotated[
        tuple[str, ...],
        _offered(
            help="The judge, if a run has several; give a second one for the second run.",
            short="-j",
            names="judge",
        ),
    ] = ()
    from_outcome: Annotated[
        FlowEnd | None,
        _offered(help="Show pairs with this outcome in the first run."),
    ] = None
    to_outcome: Annotated[
        FlowEnd | None,
        _offered(help="Show pairs with this outcome in the second run."),
    ] = None
    towards: Annotated[
        Side | None,
        _offered(help="Show pairs that moved towards this response."),
    ] = None
    limit: Annotated[
        int,
        _offered(help="Show at most this many pairs.", default="10", least=0, most=100),
    ] = 10
    after: Annotated[
        int,
        _offered(help="Start after this pair number.", default="0", least=0, most=2**62),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class HtmlOptions(Options):
    """What goes into the HTML file of a report."""

    pairs: Annotated[
        int | None,
        Option(
            help="Maximum number of pairs in the HTML file.",
            default="20,000",
            least=0,
            most=20_000,
            common=True,
        ),
    ] = None
    locale: Annotated[
        Locale | None,
        Option(help="The language of the HTML file.", default="en", common=True),
    ] = None


@dataclass(frozen=True, kw_only=True)
class GateOptions(ClaimOptions):
    """What a gate asks of a run; what is not given is as [gate] of the config file says."""

    min_win_rate: Annotated[
        float | None,
        _offered(help="The win rate to exceed, from 0 to 1.", default="0.5", least=0, most=1),
    ] = None
    require: Annotated[
        tuple[str, ...],
        _offered(
            help="Require win rates, all of which must hold: 'overall>0.5', 'safety>=0.45' "
            "(a criterion), 'tag:refunds>=0.4' (a tag). Repeatable.",
            metavar="PART>RATE",
        ),
    ] = ()
    assume_accuracy: Annotated[
        float | None,
        _offered(
            help="How often you assume the judge is right when it names a winner, for limits "
            "below 0.5 without labels; shown with the result.",
            above=0.5,
            most=1,
        ),
    ] = None
    alpha: Annotated[
        float | None,
        _offered(
            help="The interval's confidence level is 1 - alpha.", default="0.05", above=0, most=1
        ),
    ] = None
    max_inconsistent: Annotated[
        float | None,
        _offered(help="Undecided if a larger share of pairs flips.", least=0, most=1),
    ] = None
    corrected: Annotated[
        bool,
        _offered(help="Undecided unless human labels correct the win rate (see evenhand correct)."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class VotesOptions(LevelOption):
    """How people's agreement is measured."""

    seed: Annotated[
        int,
        _offered(help="Seed for alpha's interval.", default="0", least=0, most=2**31),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class JuryOptions(LevelOption, TiesOption, SideOption):
    """How judges' votes become one verdict, and what is kept of it."""

    weights: Annotated[
        Weights | None,
        _offered(
            help="plurality: one vote per judge, half for each order if they differ; majority: "
            "consistent verdicts only, with a quorum; learned: weights learned from labels; auto: "
            "the best of these and the best single judge according to the labels, plurality "
            "without labels.",
            default="auto",
        ),
    ] = None
    quorum: Annotated[
        int | None,
        _offered(
            help="How many votes a verdict needs; implies the weights majority unless given. "
            "Default: half the judges for majority, 1 for learned weights, none for plurality.",
            least=1,
            most=1000,
        ),
    ] = None
    save: Annotated[
        str | None,
        Option(help="Save the jury under a name or to a file.json.", metavar="NAME", common=True),
    ] = None
    use: Annotated[
        str | None,
        Option(help="A saved jury: a name or a file.json.", metavar="NAME", common=True),
    ] = None
    recuse_family: Annotated[
        bool,
        _offered(help="Judges do not vote on pairs with a model from their own family."),
    ] = False
    output: Annotated[
        Path | None,
        Option(
            help="Write every pair's votes and verdict as JSON Lines.",
            short="-o",
            metavar="FILE",
            common=True,
        ),
    ] = None
    force: Annotated[
        bool,
        Option(
            help="Overwrite files; with a saved jury, also allow judges it was not made for.",
            common=True,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class CorrectOptions(LabelsOption, LevelOption, SideOption, JudgeOption):
    """Whose verdicts labels correct, and for which side."""

    jury: Annotated[
        str | None,
        Option(
            help="Combine all judges of the run: plurality, majority, or a jury that evenhand "
            "jury saved and that was not learned on this run.",
            metavar="NAME",
            common=True,
        ),
    ] = None
    seed: Annotated[
        int,
        _offered(help="Seed for the draw.", default="0", least=0, most=2**31),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(LevelOption, JudgeOption):
    """What is learned of a judge's confidence, and under which name it is kept."""

    save: Annotated[
        str | None,
        Option(
            help="Save it under this name, for later runs, or to a file.json. Without it "
            "nothing is saved.",
            metavar="NAME",
            common=True,
        ),
    ] = None
    method: Annotated[
        Literal["auto", "logistic"],
        _offered(
            help="auto: a logistic curve of the signals if the labels support one, otherwise "
            "overall accuracy; logistic: always a curve.",
            default="auto",
        ),
    ] = "auto"
    min_agreement: Annotated[
        float | None,
        _offered(
            help="Find the threshold above which verdicts agree with labels at least this often "
            "(on half of the prompts); verdicts below it abstain.",
            above=0,
            most=1,
        ),
    ] = None
    error_level: Annotated[
        float | None,
        _offered(
            help="With a minimum agreement: the chance of a false guarantee.",
            default="0.05",
            above=0,
            most=1,
        ),
    ] = None
    seed: Annotated[
        int,
        _offered(
            help="Seed for the folds and the held-out half.", default="0", least=0, most=2**31
        ),
    ] = 0
    force: Annotated[bool, Option(help="Replace an existing calibration.", common=True)] = False


@dataclass(frozen=True, kw_only=True)
class RankOptions(Options):
    """Which verdicts a ranking counts, and how scores are fitted to them, or Elo ratings made."""

    judge: Annotated[
        str | None,
        _offered(
            help="Only this judge's verdicts.", default="every judge's", short="-j", names="judge"
        ),
    ] = None
    tag: Annotated[str | None, _offered(help="Only rows with this tag.")] = None
    ties: Annotated[
        Literal["half", "davidson"] | None,
        _offered(help="half: a tie is half a win; davidson: Davidson's model.", default="half"),
    ] = None
    inconsistent: Annotated[
        Literal["half", "excluded"] | None,
        _offered(
            help="half: a flipped verdict is half a win; excluded: it is left out, even if "
            "averaging gave it a winner.",
            default="half",
        ),
    ] = None
    intervals: Annotated[
        Literal["sandwich", "bootstrap", "none"] | None,
        _offered(
            help="sandwich or bootstrap, both clustered by prompt; none is fastest.",
            default="sandwich",
        ),
    ] = None
    level: Annotated[
        float | None,
        _offered(help="The confidence level of the intervals.", default="0.95", above=0, most=1),
    ] = None
    scale: Annotated[
        Literal["elo", "log-odds"] | None,
        _offered(
            help="elo: centred on 1000, 400 points are odds of 10 to 1; log-odds: centred on 0.",
            default="elo",
        ),
    ] = None
    prior: Annotated[
        float | None,
        _offered(
            help="Virtual ties of each model with an average one.",
            default="none, or 1 if the battles alone give no finite scores",
            least=0,
            most=1000,
        ),
    ] = None
    replicates: Annotated[
        int | None,
        _offered(
            help="With bootstrap intervals: the number of replicates.",
            default="1000",
            least=100,
            most=10_000,
        ),
    ] = None
    seed: Annotated[
        int | None,
        _offered(help="With bootstrap intervals: the seed.", default="0", least=0, most=2**31),
    ] = None
    elo: Annotated[
        bool,
        _offered(help="Sequential Elo ratings instead of a fit; no intervals."),
    ] = False
    k: Annotated[
        float | None,
        _offered(
            help="With Elo ratings: the maximum change per battle.",
            default="16",
            above=0,
            most=1000,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(Options):
    """Which probes are asked, and what score is enough."""

    probes: Annotated[
        tuple[str, ...],
        Option(
            help="Run only this probe, by its name in the list. Repeatable.",
            flag="probe",
            metavar="NAME",
            common=True,
        ),
    ] = ()
    locale: Annotated[
        Literal["en", "zh", "both"],
        Option(help="The language of the texts and the prompt.", default="both", common=True),
    ] = "both"
    criteria: Annotated[
        tuple[str, ...],
        Option(
            help='What to judge by, most important first: "name", "name: description", or '
            '"name*2: description" with a weight. Repeatable.',
            flag="criterion",
            short="-c",
            common=True,
        ),
    ] = ()
    min_score: Annotated[
        float | None,
        _offered(
            help="Exit with 1 if the score of all probes, or of any one, is clearly below this, "
            "and with 6 if that is undecided. From 0 to 1.",
            least=0,
            most=1,
        ),
    ] = None
    list_only: Annotated[
        bool,
        Option(
            help="List the probes and what they expect, without asking the judge.",
            flag="list",
            common=True,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Options):
    """What is to be detected, in what kind of run, and what is known of its cost."""

    win_rate: Annotated[
        tuple[float, ...] | None,
        Option(
            help="The true win rate to detect, where the judge's two orders agree, e.g. 0.55. "
            "Repeatable. Default: a table of several.",
            least=0,
            common=True,
        ),
    ] = None
    min_win_rate: Annotated[
        float,
        Option(
            help="Plan for a gate at this win rate, e.g. 0.45 to show that a side is not much "
            "worse.",
            default="0.5",
            common=True,
        ),
    ] = 0.5
    pairs: Annotated[
        int | None,
        Option(
            help="The reverse: what difference this many pairs can show.",
            least=1,
            common=True,
        ),
    ] = None
    power: Annotated[
        float,
        Option(
            help="The chance of detecting a real difference.",
            default="0.8",
            common=True,
        ),
    ] = 0.8
    alpha: Annotated[
        float,
        Option(
            help="The chance of naming a winner when there is none.",
            default="0.05",
            common=True,
        ),
    ] = 0.05
    tie_share: Annotated[
        float | None,
        Option(
            help="The share of pairs that are ties.",
            default="0, or as in the similar run",
            common=True,
        ),
    ] = None
    inconsistent_share: Annotated[
        float | None,
        Option(
            help="The share of pairs that flip.",
            default="0, or as in the similar run",
            common=True,
        ),
    ] = None
    rows_per_prompt: Annotated[
        int,
        Option(
            help="Pairs per prompt.",
            default="1",
            least=1,
            common=True,
        ),
    ] = 1
    correlation: Annotated[
        float,
        Option(
            help="The correlation between two pairs of a prompt: 0 for none, 1 for identical.",
            default="0",
            common=True,
        ),
    ] = 0.0
    samples: Annotated[
        int | None,
        Option(
            help="How many times to judge each order.",
            default="1, or as in the similar run",
            least=1,
            most=100,
            common=True,
        ),
    ] = None
    judges: Annotated[
        int | None,
        Option(
            help="Judges per pair.",
            default="those named, or 1",
            least=1,
            common=True,
        ),
    ] = None
    no_swap: Annotated[
        bool,
        Option(
            help="Judge in one order only; position may then decide.",
            common=True,
        ),
    ] = False
    orders: Annotated[
        Literal["both", "random"] | None,
        Option(
            help="random: pairs in one random order, as in evenhand run.",
            default="both, or as in the similar run",
            common=True,
        ),
    ] = None
    both_orders: Annotated[
        float | None,
        Option(
            help="With one order at random: the share of pairs judged in both.",
            default="0.1, or for a gate below 0.5 the share that needs the fewest calls",
            metavar="SHARE",
            least=0,
            most=1,
            common=True,
        ),
    ] = None
    until_decided: Annotated[
        bool,
        Option(
            help="Plan for a run that stops once it is decided.",
            common=True,
        ),
    ] = False
    like: Annotated[
        str | None,
        Option(
            help="A similar stored run: take cost, tokens, tie and flip rates, orders, samples and "
            "judges from it.",
            metavar="RUN",
            names="run",
            common=True,
        ),
    ] = None
    price: Annotated[
        str | None,
        Option(
            help="The judge's price in dollars per million tokens in/out, if it is not on a price "
            "list: e.g. 0.15/0.60.",
            metavar="INPUT/OUTPUT",
            common=True,
        ),
    ] = None
    tokens: Annotated[
        str | None,
        Option(
            help="Tokens per call in/out, to go with a price: e.g. 900/400.",
            metavar="INPUT/OUTPUT",
            common=True,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class AuditOptions(LevelOption):
    """Which verdicts are held against labels, and what is enough."""

    judge: Annotated[
        str | None,
        _offered(
            help="The judge to ask; of a run with several, the one to audit.",
            short="-j",
            names="judge",
        ),
    ] = None
    against: Annotated[
        str | None,
        _offered(
            help="Another run over the same pairs, e.g. with another judge or language.",
            metavar="RUN",
            names="run",
        ),
    ] = None
    disagreements: Annotated[
        int,
        _offered(help="How many disagreements to list.", default="20", least=0, most=10_000),
    ] = 20
    min_accuracy: Annotated[
        float | None,
        _offered(help="Fail below this accuracy.", least=0, most=1),
    ] = None
    min_kappa: Annotated[
        float | None,
        _offered(help="Fail below this Cohen's kappa.", least=-1, most=1),
    ] = None
    min_consistency: Annotated[
        float | None,
        _offered(help="Fail if both orders agree less often.", least=0, most=1),
    ] = None
    max_unread: Annotated[
        float | None,
        _offered(help="Fail if more pairs have no verdict.", least=0, most=1),
    ] = None
    max_place_lean: Annotated[
        float | None,
        Option(
            help="Fail above this position bias; without it, an alarm at 0.1.",
            least=0,
            most=1,
            clients=True,
        ),
    ] = None
    max_length_excess: Annotated[
        float | None,
        Option(
            help="Fail if longer responses win this much more than the labels say; without it, "
            "an alarm at 0.1.",
            least=0,
            most=1,
            clients=True,
        ),
    ] = None
    try_prepare: Annotated[
        bool,
        Option(
            help="Judge the labelled pairs with and without each choice of preparation, and show "
            "what each gains and costs.",
            common=True,
        ),
    ] = False
    choices: Annotated[
        tuple[str, ...],
        Option(
            help="A choice of preparation to try, e.g. metrics,reference; optionally with its own "
            "judge if its answers were recorded separately. Repeatable.",
            default="metrics; reference; both; analysis",
            flag="choice",
            metavar="KINDS[=JUDGE]",
        ),
    ] = ()
