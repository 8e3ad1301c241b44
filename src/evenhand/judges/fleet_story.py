"""What happened to a fleet's servers, in lines for people."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from evenhand.judges.fleet_member import Member
from evenhand.judges.protocol import Account, News, ServerNews

_NEWS_KEPT = 200
# More servers than this are summed up.
_NAMED_EACH = 6


class Story:
    def __init__(self, judge: str, members: Sequence[Member]) -> None:
        self._judge = judge
        self._members = members
        self._news: deque[ServerNews] = deque(maxlen=_NEWS_KEPT)
        self._told = 0

    def left(self, member: Member, *, kind: str) -> None:
        self._tell(ServerNews(self._judge, member.address, kind, member.why))

    def returned(self, member: Member) -> None:
        self._tell(ServerNews(self._judge, member.address))

    def _tell(self, news: ServerNews) -> None:
        self._news.append(news)
        self._told += 1

    def open_news(self) -> News:
        seen = self._told

        def news() -> tuple[ServerNews, ...]:
            nonlocal seen
            if seen == self._told:
                return ()
            new, seen = self._told - seen, self._told
            return tuple(self._news)[-new:]

        return news

    def open_account(self) -> Account:
        before = [_standing(each) for each in self._members]

        def account() -> tuple[str, ...]:
            shares, troubles = [], []
            for member, was in zip(self._members, before, strict=True):
                now = _standing(member)
                answers, answers_s, out, limited = (a - b for a, b in zip(now, was, strict=True))
                each_s = answers_s / answers if answers else 0.0
                shares.append((member.address, int(answers), each_s))
                if out or member.is_out:
                    troubles.append(_trouble(member, int(out)))
                if limited:
                    troubles.append(f"{member.address} asked to wait{_often(int(limited))}")
            if not any(made for _, made, _ in shares):
                return tuple(f"{self._judge}: {line}" for line in troubles)
            return tuple(f"{self._judge}: {line}" for line in (_shares(shares), *troubles))

        return account


def _standing(member: Member) -> tuple[float, ...]:
    return (member.answers, member.answers_s, member.times_out, member.times_limited)


def _shares(shares: Sequence[tuple[str, int, float]]) -> str:
    """Addresses with the calls that each answered, and the seconds that one took."""
    if len(shares) <= _NAMED_EACH:
        told = [
            f"{address} {made:,} ({each_s:.2f} s each)" if made else f"{address} none"
            for address, made, each_s in shares
        ]
        return f"answers by server: {', '.join(told)}"
    counts = [made for _, made, _ in shares]
    slowest, _, slowest_s = max(shares, key=lambda each: each[2])
    mean_s = sum(made * each_s for _, made, each_s in shares) / sum(counts)
    return (
        f"{len(shares)} servers gave {min(counts):,} to {max(counts):,} answers each; the slowest "
        f"was {slowest} ({slowest_s:.2f} s each, {mean_s:.2f} s over all)"
    )


def _trouble(member: Member, times: int) -> str:
    end = "it had not come back when this ended" if member.is_out else "it came back"
    return f"{member.address} was left alone{_often(times)} ({member.why}); {end}"


def _often(times: int) -> str:
    return {0: "", 1: " once"}.get(times, f" {times:,} times")
