"""What `evenhand audit` was given, checked before a judge is asked anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import DataError, InputError

if TYPE_CHECKING:
    import typer

    from evenhand.data import Reading, Source
    from evenhand.trust.rules import RuleFigures, RuleName

# They say how pairs are judged, which a run's are already.
_OF_JUDGING = (
    *("base_url", "columns", "bad_rows", "criteria", "no_tie", "no_swap", "name", "concurrency"),
    *("rpm", "tpm", "max_calls", "max_cost", "price", "confirm_above", "yes", "fresh", "retry"),
    "keep_going_unread",
    *("locale", "mode", "samples", "reconcile", "confidence", "template", "protocol", "timeout"),
    *("max_tokens", "temperature", "retries", "repairs"),
)


def as_data(given: str | None) -> Source | None:
    """The file that is meant, or None where a run's name is."""
    from evenhand.cli.run_inputs import data_path
    from evenhand.data import open_source
    from evenhand.data.remote import url_in

    if given is None:
        return None
    path = data_path(given)
    if path != "-" and url_in(path) is None and (not Path(path).exists() or Path(path).is_dir()):
        return None
    return open_source(path)


def refuse_judging_options(context: typer.Context, run: str) -> None:
    """Silently doing without what somebody asked for is worse than an error."""
    given = [
        name
        for name in _OF_JUDGING
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        options = {param.name: param.opts[0] for param in context.command.params}
        named = ", ".join(options[name] for name in given)
        raise InputError(
            f"{named} would judge a file of pairs, and there is no file {run!r}: a run is audited "
            "as it was judged; leave it out, or name the file"
        )


def refuse_unknown_file(address: str | None, run: str) -> None:
    """A file that is not there should not be told as a run, or a store, that is not there."""
    from evenhand.errors import StoreError
    from evenhand.store import open_store

    if Path(run).suffix == "" and "/" not in run:
        return
    try:
        with open_store(address, create=False) as store:
            known = store.find_run(run) is not None
    except StoreError:
        known = False
    if not known:
        raise InputError(f"there is neither a file {run!r} nor a run of that name; check the path")


def need_labels(data: Source, reading: Reading, store: str | None) -> None:
    """Before anybody pays for judging pairs that cannot be audited."""
    from collections import Counter

    from evenhand.data import BadRow, read_pairs
    from evenhand.trust.audit_labels import refuse_one_sided

    in_one_order: Counter[int] = Counter()
    for row in read_pairs([data], reading):
        if isinstance(row, BadRow) or row.label is None:
            continue
        if row.pair.swap_positions:
            return
        in_one_order[("A", "B", "TIE").index(row.label)] += 1
        if len(in_one_order) > 1:
            return
    refuse_one_sided(data.name, in_one_order)
    if not in_one_order and not _any_vote(store):
        raise DataError(
            f"{data.name} has no labels; it needs a column label (A, B or TIE; --map label=COLUMN "
            "names it), or people's votes on its pairs (evenhand run, then evenhand label)"
        )


def has_labels(data: Source, reading: Reading) -> bool:
    from evenhand.data import BadRow, read_pairs

    return any(
        not isinstance(row, BadRow) and row.label is not None for row in read_pairs([data], reading)
    )


def vote_lists_note(data: Source, run: str) -> str | None:
    """Where a file's rows hold several people's verdicts, which are votes once imported."""
    from itertools import islice

    from evenhand.data.columns import Columns
    from evenhand.data.formats import open_table
    from evenhand.data.votes import VOTE_FIELDS

    known = Columns({"votes": VOTE_FIELDS["votes"]}, {})
    table = open_table(data.files[0], wanted=known.wanted)
    for _, row in islice(table.rows, 1):
        found = known.find(tuple(row)) if not isinstance(row, str) else {}
        if "votes" in found:
            return (
                f"the column {found['votes'][0]} may hold several people's verdicts; evenhand "
                f"votes import {run} {data.name} makes them a yardstick"
            )
    return None


def _any_vote(address: str | None) -> bool:
    """Whether people have voted on any pair in the store; which, is seen once pairs are in."""
    from evenhand.errors import StoreError
    from evenhand.store import open_store

    try:
        with open_store(address, create=False) as store:
            return any(store.vote_columns(run.id).pair_id for run in store.list_runs())
    except StoreError:
        return False


def figures_by_rule(
    rule: RuleName, data: Source | None, judge: str | None, columns: list[str] | None
) -> tuple[RuleFigures, bool]:
    """The authors' figures over what a replayed judge was recorded to say; whether by labels."""
    from evenhand.cli.run_inputs import mapped_columns
    from evenhand.data import Reading
    from evenhand.trust.rules import NEEDS_LABELS, apply_rule, labels_of, recordings_of

    if judge is None or not judge.strip().startswith("replay:"):
        raise InputError(
            f"--rule {rule} is for recorded judges; give the file of pairs and --judge replay:FILE"
        )
    labels = None
    if data is not None:
        reading = Reading(columns=mapped_columns(columns), criteria_needed=False)
        if rule in NEEDS_LABELS or has_labels(data, reading):
            labels = labels_of(data, reading)
    return apply_rule(rule, recordings_of(judge), labels), labels is not None
