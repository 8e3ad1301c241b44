"""The tables, and a text type that both engines can hold. New stores are made from them;
`migrations/` upgrades earlier ones.
"""

from __future__ import annotations

import unicodedata
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeDecorator, UserDefinedType

# PostgreSQL's text cannot hold U+0000, and SQLite's functions stop at it. So U+0000 is stored as
# U+001A "0", and U+001A as U+001A "1". JSON needs neither: it escapes both.

_INDEXED_LENGTH = 200
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = frozenset("\u200c\u200d")  # they build letters and emoji


def escape(text: str) -> str:
    if "\x00" in text or "\x1a" in text:
        return text.replace("\x1a", "\x1a1").replace("\x00", "\x1a0")
    return text


def unescape(text: str) -> str:
    if "\x1a" in text:
        return text.replace("\x1a0", "\x00").replace("\x1a1", "\x1a")
    return text


def escape_or_none(text: str | None) -> str | None:
    return None if text is None else escape(text)


def unprintable(name: str) -> str | None:
    """The first invisible or layout-changing character of a name."""
    for character in name:
        if unicodedata.category(character) in _UNSEEN and character not in _JOINERS:
            return f"U+{ord(character):04X}"
    return None


def shorten(key: str) -> str:
    """A key as indexed: shortened if too long for an index."""
    if len(key) <= _INDEXED_LENGTH:
        return key
    return f"{key[: _INDEXED_LENGTH // 2]}…{blake2b(key.encode(), digest_size=16).hexdigest()}"


class SafeText(TypeDecorator[str]):
    """A text column for arbitrary text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return escape(value) if isinstance(value, str) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return unescape(value) if isinstance(value, str) else value


class WordPositions(UserDefinedType[str]):
    """PostgreSQL's tsvector; SQLAlchemy's own would load its whole PostgreSQL dialect, 0.1 s of
    every command."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "TSVECTOR"


# Integer keys grow with arrival, so that indexes grow at their ends and the time per pair stays
# constant. Large texts come last: SQLite reads a row from its start, and sums need not read past
# the numbers.

VERSION_TABLE = "evenhand_schema"
# Oldest first; the last is the current one. None before 0019 was released.
REVISIONS = ("0019",)
HEAD = REVISIONS[-1]

# Only a plain INTEGER is SQLite's rowid.
_Key = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

AT_REST = ("finished", "stopped")  # states of runs that nobody is at

runs = Table(
    "runs",
    metadata,
    Column("id", _Key, Identity(), primary_key=True),
    Column("name", SafeText, nullable=False, unique=True),
    Column("fingerprint", SafeText, nullable=False, index=True),
    Column("state", Text, nullable=False),
    Column("intake_done", Boolean, nullable=False),
    Column("stopped_by", SafeText),
    Column("seconds", Double, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Column("reused_passes", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),  # Unix time, like every other moment here
    Column("updated_at", Double, nullable=False),
    Column("sources", Text, nullable=False),  # JSON, like plan, summary, settings, tags, criteria
    Column("plan", Text, nullable=False),
    Column("summary", Text, nullable=False),
)

judges = Table(
    "judges",
    metadata,
    Column("id", _Key, Identity(), primary_key=True),
    Column("key", SafeText, nullable=False, unique=True),
    Column("name", SafeText, nullable=False),
    Column("prompt_version", SafeText),
    Column("locale", Text),
    Column("mode", Text),
    Column("settings", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("template", SafeText),  # the text of a template that is not ours
)

run_judges = Table(
    "run_judges",
    metadata,
    Column("run_id", _Key, ForeignKey("runs.id"), nullable=False),
    Column("judge_id", _Key, ForeignKey("judges.id"), nullable=False, index=True),
    Column("place", Integer, nullable=False),
    PrimaryKeyConstraint("run_id", "judge_id"),
)

pairs = Table(
    "pairs",
    metadata,
    Column("id", _Key, Identity(), primary_key=True),
    Column("digest", LargeBinary(16), nullable=False, unique=True),
    Column("allow_tie", Boolean, nullable=False),
    Column("criteria", Text, nullable=False),
    Column("prompt", SafeText, nullable=False),
    Column("context", SafeText),
    Column("reference", SafeText),
    Column("response_a", SafeText, nullable=False),
    Column("response_b", SafeText, nullable=False),
)

items = Table(
    "items",
    metadata,
    Column("run_id", _Key, ForeignKey("runs.id"), nullable=False),
    Column("number", _Key, nullable=False),
    Column("key", SafeText, nullable=False),  # shortened where it is long
    Column("full_key", SafeText),  # only then
    Column("pair_id", _Key, ForeignKey("pairs.id"), nullable=False),
    Column("swap_positions", Boolean, nullable=False),
    Column("row", BigInteger, nullable=False),
    Column("label", Text),
    Column("source", SafeText, nullable=False),
    Column("model_a", SafeText),
    Column("model_b", SafeText),
    Column("tags", Text),
    # What statistics need of the texts, so that they need not read them.
    Column("prompt_key", BigInteger, nullable=False),
    Column("length_a", Integer, nullable=False),  # in characters
    Column("length_b", Integer, nullable=False),
    Column("noted", Boolean, nullable=False),  # there is a note on the pair, whatever the verdict
    # The single order that was drawn at random; null if both are asked, or a fixed one.
    Column("drawn_order", Text),
    PrimaryKeyConstraint("run_id", "number"),
    UniqueConstraint("run_id", "key"),
    Index("ix_items_pair_id", "pair_id", "run_id", "number"),
)

# Only for runs with their own order, so that others pay nothing.
queue = Table(
    "queue",
    metadata,
    Column("run_id", _Key, nullable=False),
    # Which two models; 0 if they do not matter, and for the uniform share.
    Column("contest", Integer, nullable=False),
    Column("place", _Key, nullable=False),  # of the prompt, from 1, in a seeded random order
    Column("number", _Key, nullable=False),
    PrimaryKeyConstraint("run_id", "contest", "place", "number"),
    ForeignKeyConstraint(["run_id", "number"], ["items.run_id", "items.number"]),
)

# Only rows with tags: a page of one tag's verdicts need not scan all rows.
item_tags = Table(
    "item_tags",
    metadata,
    Column("run_id", _Key, nullable=False),
    Column("tag", SafeText, nullable=False),  # shortened where it is long
    Column("number", _Key, nullable=False),
    PrimaryKeyConstraint("run_id", "tag", "number"),
    ForeignKeyConstraint(["run_id", "number"], ["items.run_id", "items.number"]),
    sqlite_with_rowid=False,
)

# Flags on pairs. The comment may quote a text.
pair_flags = Table(
    "pair_flags",
    metadata,
    Column("run_id", _Key, nullable=False),
    Column("number", _Key, nullable=False),
    Column("flagged_at", Double, nullable=False),
    Column("comment", SafeText),
    PrimaryKeyConstraint("run_id", "number"),
    ForeignKeyConstraint(["run_id", "number"], ["items.run_id", "items.number"]),
)

skipped_rows = Table(
    "skipped_rows",
    metadata,
    Column("run_id", _Key, ForeignKey("runs.id"), nullable=False),
    Column("digest", LargeBinary(16), nullable=False),  # of source and row
    Column("row", BigInteger, nullable=False),
    Column("source", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
    PrimaryKeyConstraint("run_id", "digest"),
)


def _pass_columns() -> list[Column[object]]:
    return [
        Column("pair_id", _Key, ForeignKey("pairs.id"), nullable=False),
        # Without foreign keys to judges and runs: deleting one would scan every pass.
        Column("judge_id", _Key, nullable=False),
        Column("shown_order", Text, nullable=False),
        Column("sample", Integer, nullable=False),
        Column("status", Text, nullable=False),
        Column("reason", SafeText),  # why it is unread, or what failed
        Column("winner", Text),
        Column("confidence", Double),
        Column("requests", BigInteger, nullable=False),
        Column("input_tokens", BigInteger),
        Column("output_tokens", BigInteger),
        Column("cached_input_tokens", BigInteger),
        Column("cost_usd", Double),
        Column("time_ms", Double, nullable=False),
        Column("run_id", _Key),  # the run that made it; null once that run is deleted
        Column("created_at", Double, nullable=False),
        Column("model", SafeText),
        Column("raw", SafeText, nullable=False),
        Column("body", Text, nullable=False),  # the pass's JSON without raw, or its vote
    ]


passes = Table(
    "passes",
    metadata,
    *_pass_columns(),
    PrimaryKeyConstraint("pair_id", "judge_id", "shown_order", "sample"),
)

replaced_passes = Table(
    "replaced_passes",
    metadata,
    Column("id", _Key, Identity(), primary_key=True),
    Column("replaced_at", Double, nullable=False),
    *_pass_columns(),
    Index(None, "pair_id", "judge_id"),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("run_id", _Key, nullable=False),
    Column("number", _Key, nullable=False),
    Column("judge_id", _Key, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("winner", Text),
    Column("confidence", Double),
    Column("confidence_source", Text, nullable=False),
    Column("first_pass_winner", Text),
    Column("second_pass_winner", Text),
    Column("error_kind", SafeText),
    Column("error_message", SafeText),
    Column("samples", Integer, nullable=False),
    Column("passes", Integer, nullable=False),  # how many it rests on
    Column("created_at", Double, nullable=False),
    Column("abstained", Boolean, nullable=False),
    # JSON or null: each criterion's name, outcome, winner, and each order's. Separate from the
    # rest, which differs in every verdict: statistics parse equal texts once.
    Column("by_criterion", Text),
    Column("body", Text, nullable=False),  # JSON: what else a decision has, or the whole failure
    PrimaryKeyConstraint("run_id", "number", "judge_id"),
    ForeignKeyConstraint(["run_id", "number"], ["items.run_id", "items.number"]),
    # Covers all that a tally counts, without reading texts.
    Index(None, "run_id", "judge_id", "outcome", "winner", "number"),
)


def _vote_columns() -> list[Column[object]]:
    return [
        Column("pair_id", _Key, ForeignKey("pairs.id"), nullable=False),
        Column("who", SafeText, nullable=False),
        Column("verdict", Text),  # null: looked at and skipped
        Column("origin", Text, nullable=False),
        Column("draw", Text),  # how the pair was chosen for voting; null where nobody knows
        Column("chance", Double),  # of being drawn, where it is known
        Column("shown_order", Text),
        Column("voted_at", Double, nullable=False),
        Column("comment", SafeText),
    ]


# Of people, on the pair's content: shared by every run with the pair.
votes = Table("votes", metadata, *_vote_columns(), PrimaryKeyConstraint("pair_id", "who"))

replaced_votes = Table(
    "replaced_votes",
    metadata,
    Column("id", _Key, Identity(), primary_key=True),
    Column("replaced_at", Double, nullable=False),
    *_vote_columns(),
    Index(None, "pair_id", "who"),
)

# Runs that a server judges in the background, shared by its processes.
jobs = Table(
    "jobs",
    metadata,
    Column("run_id", _Key, ForeignKey("runs.id"), nullable=False, autoincrement=False),
    Column("wanted", Text, nullable=False),  # intake, run, stop, done
    Column("queued_at", Double, nullable=False),  # the longest waiting comes first
    Column("beat_at", Double),  # when its judging was last heard of; null where nobody judges it
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("token", SafeText),  # the name of whose it is; never the token itself
    Column("judges", Text, nullable=False),  # JSON, like options, progress and error
    Column("options", Text, nullable=False),
    Column("progress", Text, nullable=False),
    Column("error", Text),
    PrimaryKeyConstraint("run_id"),
    Index(None, "wanted", "queued_at"),
)

# Prompts of background runs that are not fully answered.
job_prompts = Table(
    "job_prompts",
    metadata,
    Column("run_id", _Key, ForeignKey("runs.id"), nullable=False, autoincrement=False),
    Column("name", SafeText, nullable=False),  # of the file
    Column("sides", Text, nullable=False),  # JSON: what both models are told beside the prompts
    Column("body", LargeBinary, nullable=False),  # the file
    PrimaryKeyConstraint("run_id"),
)

# Logins that were ended early.
ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("id", Text, nullable=False),
    Column("ends_at", Double, nullable=False, index=True),  # then it would have ended by itself
    PrimaryKeyConstraint("id"),
)

# Answers to requests that clients may repeat under the same key.
idempotency = Table(
    "idempotency",
    metadata,
    Column("token", SafeText, nullable=False),
    Column("key", SafeText, nullable=False),  # shortened where it is long
    Column("path", SafeText, nullable=False),
    Column("digest", Text, nullable=False),  # of the request's body
    Column("owner", Text, nullable=False),  # who answers it, by a random name
    Column("begun_at", Double, nullable=False, index=True),
    Column("leased_until", Double, nullable=False),  # then its process is taken for dead
    Column("status", Integer),  # null while it is being answered, like the two below
    Column("headers", Text),  # JSON
    Column("body", LargeBinary),
    PrimaryKeyConstraint("token", "key"),
)

# Indexed pairs: in SQLite by an FTS5 table with these ids, in PostgreSQL here.
search_docs = Table(
    "search_docs",
    metadata,
    Column("pair_id", _Key, nullable=False, autoincrement=False),
    Column("words", Text().with_variant(WordPositions(), "postgresql")),
    PrimaryKeyConstraint("pair_id"),
)
# In PostgreSQL of the kind GIN. `postgres` says so: here it would load SQLAlchemy's PostgreSQL for
# every store.
words_index = Index(
    "ix_search_docs_words",
    search_docs.c.words,
    sqlite_where=text("words IS NOT NULL"),  # there it has none, and the index nothing in it
)

# Slow figures, as of `stamp`. Ids are never reused, so that none is stored under a deleted one's.
figures = Table(
    "figures",
    metadata,
    Column("id", _Key, Identity(), primary_key=True),
    Column("run_id", _Key, nullable=False),
    Column("name", Text, nullable=False),
    Column("parameters", Text, nullable=False),  # a digest of them
    Column("stamp", Text),  # null until it was computed once, like the next two
    Column("computed_at", Double),
    Column("took_s", Double),
    Column("begun_at", Double),  # by who computes it now; null where nobody does
    Column("asked_at", Double, nullable=False),
    Column("failed", Boolean, nullable=False),
    Column("body", Text),  # JSON: the figure, or why there is none
    UniqueConstraint("run_id", "name", "parameters"),
    sqlite_autoincrement=True,
)

# Requests in providers' batches, which may take a day.
batches = Table(
    "batches",
    metadata,
    Column("id", _Key, Identity(), primary_key=True),
    Column("run_id", _Key, nullable=False),
    Column("judge_id", _Key, nullable=False),
    Column("nonce", Text, nullable=False, unique=True),  # by which it is found at the provider
    Column("state", Text, nullable=False),  # intended, open, done
    Column("requests", Integer, nullable=False),
    Column("first_number", _Key, nullable=False),  # of the items that it asks about
    Column("last_number", _Key, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("sent_at", Double),  # just before it was sent: from then on it may be there
    Column("reserved_usd", Double),  # what it may cost; null where nobody knows
    Column("provider_id", SafeText),
    Index(None, "run_id", "state"),
)

# Their requests and answers: kept until the pass is stored.
batch_requests = Table(
    "batch_requests",
    metadata,
    Column("batch_id", _Key, nullable=False),
    Column("place", Integer, nullable=False),  # in the batch, from 1
    Column("run_id", _Key, nullable=False),
    Column("judge_id", _Key, nullable=False),
    # For an artefact: a negative number derived from its key, and the key as the order.
    Column("pair_id", _Key, nullable=False),
    Column("shown_order", Text, nullable=False),
    Column("sample", Integer, nullable=False),
    Column("turn", Integer, nullable=False),  # which request of the pass, from 1
    Column("form", Text),  # in which of the judge's ways it was written
    Column("answer", Text),  # JSON, as the provider sent it; null until it comes
    PrimaryKeyConstraint("batch_id", "place"),
    Index(None, "run_id", "judge_id", "pair_id"),
)

# Answers of models in A/B tests, by a digest of all they depend on.
answers = Table(
    "answers",
    metadata,
    Column("key", Text, primary_key=True),
    Column("run_id", _Key, nullable=False),  # the run that had it generated
    Column("outcome", Text, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("input_tokens", Integer),
    Column("output_tokens", Integer),
    Column("cost_usd", Double),
    Column("time_ms", Double),
    Column("model", SafeText),
    Column("error", SafeText),
    Column("text", SafeText, nullable=False),
    Index(None, "run_id"),
)
