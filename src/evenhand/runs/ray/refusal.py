"""What cannot be run on Ray, said before anything is read or started."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from yarl import URL

from evenhand.errors import InputError, MissingExtra
from evenhand.judges.redaction import shown_url
from evenhand.runs.options import RunOptions
from evenhand.runs.plan import JudgePlan
from evenhand.store import Store

_SECRET_PARTS = ("key", "token", "secret", "sig", "password")


def refuse_what_ray_cannot(store: Store, judges: Sequence[JudgePlan], options: RunOptions) -> None:
    if not store.address.startswith("postgresql://"):
        raise InputError(
            f"store {store.address} is a file, and Ray's workers write from several processes and "
            "machines, which a file does not take; give --store postgresql://…"
        )
    address = options.ray_address or ""
    if address.startswith("ray://"):
        raise InputError(
            f"--ray-address {address} is one of Ray's client, which is no part of the cluster; "
            "run evenhand on a node of it (ray job submit does), with --ray-address auto"
        )
    for plan in judges:
        _refuse_judge(plan)
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra("ray", "ray")


def _refuse_judge(plan: JudgePlan) -> None:
    name = plan.judge.name
    if plan.recipe is None:
        raise InputError(
            f"judge {name} lives in this process, and Ray's workers have to open their own; "
            "give it by its name, e.g. openai:gpt-4o"
        )
    kind = plan.recipe.spec.partition(":")[0]
    if kind in ("local", "replay"):
        why = (
            "answers one call at a time by this machine's own processor"
            if kind == "local"
            else "reads a file that other nodes may not have, and needs no cluster"
        )
        raise InputError(f"judge {name} {why}; leave out --executor ray")
    given = plan.recipe.options.base_url or ()
    for address in (given,) if isinstance(given, str) else given:
        if _has_secrets(address):
            raise InputError(
                f"base URL {shown_url(address)} comes with credentials, which may not go through "
                "Ray; set OPENAI_API_KEY where the workers run, and give the address alone"
            )


def _has_secrets(address: str) -> bool:
    try:
        url = URL(address.strip())
    except ValueError:
        return "@" in address
    named = " ".join(url.query).lower()
    return bool(url.user or url.password) or any(part in named for part in _SECRET_PARTS)
