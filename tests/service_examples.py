"""What stands as examples in the OpenAPI document, made by asking a real server.

PYTHONPATH=tests python tests/service_examples.py     # writes them anew
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evenhand.serve import http
from evenhand.serve.config import ServerConfig
from http_service import HttpService, judge_offer
from servers import JudgeServer, Reply, SeenRequest, chat_reply

ENDS = ("finished", "failed", "stopped")
FOLDER = Path(http.__file__).parent / "examples"

PAIR = {
    "prompt": "What is the capital of Australia?",
    "responseA": "Canberra, since 1913.",
    "responseB": "Sydney is the capital of Australia.",
    "criteria": ["accuracy"],
}
IN_FULL = {
    "id": "capital-1",
    "prompt": "What is the capital of Australia?",
    "context": "A quiz for children.",
    "reference": "Canberra",
    "responseA": "Canberra, since 1913.",
    "responseB": "Sydney is the capital of Australia.",
    "criteria": [{"name": "accuracy", "description": "is it true?", "weight": 2}, "clarity"],
    "allowTie": False,
    "swapPositions": True,
}
_CAPITALS = {
    "Australia": ("Canberra", "Sydney"),
    "Brazil": ("Brasília", "Rio de Janeiro"),
    "Canada": ("Ottawa", "Toronto"),
    "Kazakhstan": ("Astana", "Almaty"),
    "Morocco": ("Rabat", "Casablanca"),
    "Türkiye": ("Ankara", "Istanbul"),
}


def rows() -> list[dict[str, Any]]:
    """Of six, the old model knows two, and the new one four."""
    told = []
    for number, (country, (right, wrong)) in enumerate(_CAPITALS.items(), start=1):
        old, new = (right, wrong) if number % 3 == 0 else (wrong, right)
        told.append(
            {
                "id": f"capital-{number}",
                "prompt": f"What is the capital of {country}?",
                "responseA": f"It is {old}.",
                "responseB": f"It is {new}.",
                "modelA": "old",
                "modelB": "new",
                "label": "A" if old == right else "B",
                "tags": ["geography"],
            }
        )
    return told


def knows_capitals(request: SeenRequest) -> Reply:
    """A judge that goes by what is right, and on Morocco by the place."""
    text = request.prompt
    right = [capital for capital, _ in _CAPITALS.values() if capital in text]
    said = re.findall(r"It is ([^.]+)\.|(Canberra(?=, since)|Sydney(?= is))", text)
    first = next(one or other for one, other in said)
    winner = "A" if first in right or first == "Casablanca" else "B"
    loser = "B" if winner == "A" else "A"
    said_of = {winner: "It names the capital.", loser: "It names a larger city."}
    names = ["accuracy"] + (["clarity"] if "clarity" in text else [])
    answer = {
        "analysis": {
            f"response{winner}": {"strengths": ["names the capital"], "weaknesses": []},
            f"response{loser}": {"strengths": [], "weaknesses": ["takes size for rank"]},
        },
        "comparison": [
            {
                "criterion": name,
                "aAssessment": said_of["A"],
                "bAssessment": said_of["B"],
                "reasoning": f"Response {winner} is right, Response {loser} is not.",
                "winner": winner,
            }
            for name in names
        ],
        "result": {
            "reasoning": f"Response {winner} names the capital, Response {loser} a larger city.",
            "differentiators": ["the right city"],
            "winner": winner,
            "confidence": 0.95,
        },
    }
    used = {"prompt_tokens": len(text) // 4, "completion_tokens": 140, "total_tokens": 0}
    return chat_reply(json.dumps(answer), usage=used, model="gpt-4o", request_id="chatcmpl-1")


def last_event(text: str) -> dict[str, str]:
    block = text.strip().split("\n\n")[-1]
    return dict(line.split(": ", 1) for line in block.splitlines())


def gather(service: HttpService) -> dict[str, Any]:
    """Every example by its name: a value, or a text."""
    client = service.client

    def get(path: str, **query: Any) -> Any:
        return client.get(path, params=query).raise_for_status().json()

    def post(path: str, body: Any) -> Any:
        return client.post(path, json=body).raise_for_status().json()

    start = {
        "pairs": rows()[:2],
        "criteria": ["accuracy"],
        "judge": "main",
        "name": "two-capitals",
        "maxCalls": 100,
    }
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows())
    kind = {"Content-Type": "application/x-ndjson"}
    query = {"criteria": "accuracy", "name": "capitals"}

    def start_lines(query: dict[str, str]) -> dict[str, Any]:
        answer = client.post("/v1/runs", params=query, content=lines.encode(), headers=kind)
        told: dict[str, Any] = answer.raise_for_status().json()
        return told

    def finished(started: dict[str, Any]) -> dict[str, Any]:
        run: dict[str, Any] = started
        while run["state"] not in ENDS:
            time.sleep(0.05)
            run = get(f"/v1/runs/{started['id']}")
        return run

    def changed(place: str) -> Any:
        again = finished(start_lines({"criteria": "clarity", "name": "capitals-clarity"}))
        return get(f"/v1/runs/{again['id']}/diff", against=place, limit=1, toOutcome="A")

    def of_probes() -> Any:
        """Of a judge that needs no server."""
        name, store = "empty-probe", str(service.config.store)
        asked = ["--judge", "baseline:longer", "--probe", "empty", "--locale", "en"]
        command = [sys.executable, "-m", "evenhand", "probe", *asked]
        subprocess.run(
            [*command, "--name", name, "--store", store], check=True, capture_output=True
        )
        return get(f"/v1/runs/{name}/probe")

    def by_jury() -> Any:
        """With another model as judge."""
        name = "capitals-second"
        finished(start_lines({"criteria": "accuracy", "judge": "second", "name": name}))
        return get(f"{place}/jury", runs=name)

    started = start_lines(query)
    place = f"/v1/runs/{started['id']}"
    run = finished(started)
    flag = {"pair": "capital-2", "comment": "Both name a city that was the capital once."}
    rank, audit = {"runs": [run["id"]]}, {"run": run["id"], "minAccuracy": 0.5}
    return {
        "pair": PAIR,
        "pair-in-full": IN_FULL,
        "verdict": post("/v1/compare", IN_FULL),
        "lines": lines,
        "start-run": start,
        "started-run": started,
        "run": run,
        "run-page": get("/v1/runs"),
        "event": last_event(client.get(f"{place}/events").text),
        "verdict-page": get(f"{place}/verdicts", limit=2),
        "report": get(f"{place}/report"),
        "gate": get(f"{place}/gate"),
        "calibrate": get(f"{place}/calibrate"),
        "correct": get(f"{place}/correct", labelsAre="random"),
        "votes": get(f"{place}/votes"),
        "rank-runs": rank,
        "rank": post("/v1/rank", rank),
        "audit-run": audit,
        "audit": post("/v1/audits", audit),
        "flag-pair": flag,
        "flagged-pair": post(f"{place}/flags", flag),
        "diff": changed(run["id"]),
        "jury": by_jury(),
        "probe": of_probes(),
        "judges": get("/v1/judges"),
        "health": get("/healthz"),
        "ready": get("/readyz"),
        "metrics": "".join(
            line + "\n"
            for line in client.get("/metrics").text.splitlines()
            if "evenhand_comparisons_total" in line
        ),
    }


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, JudgeServer(knows_capitals) as judge:
        models = {"main": "openai:gpt-4o", "second": "openai:gpt-4o-mini"}
        offers = [judge_offer(name, model, base_url=judge.url) for name, model in models.items()]
        config = ServerConfig(judges=tuple(offers), store=f"{folder}/evenhand.db", port=0)
        service = HttpService(config)
        service.start()
        idle = HttpService(ServerConfig(store=f"{folder}/idle.db", port=0))
        idle.start()
        try:
            gathered = gather(service) | {"not-ready": idle.client.get("/readyz").json()}
        finally:
            idle.close()
            service.close()
    text = json.dumps(gathered, ensure_ascii=False).replace(f"{folder}/", "")
    for name, value in json.loads(text).items():
        if isinstance(value, str):
            (FOLDER / f"{name}.txt").write_text(value, "utf-8")
        else:
            told = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
            (FOLDER / f"{name}.json").write_text(told, "utf-8")


if __name__ == "__main__":
    main()
