"""A judge that says anything at all, and pairs and ways of judging to hear it with."""

from __future__ import annotations

from hypothesis import strategies as st

from evenhand.judges import Completion, JudgeCall, Traits
from evenhand.judging.config import JudgeConfig
from scripted import ScriptedJudge, answer_json, letter_completion, make_pair, seeded_by

CRITERIA = ["accuracy", "clarity"]

pairs = st.builds(
    make_pair,
    id=st.just("x"),
    prompt=st.text(max_size=20),
    response_a=st.text(max_size=20),
    response_b=st.text(max_size=20),
    criteria=st.just(CRITERIA),
    allow_tie=st.booleans(),
    swap_positions=st.booleans(),
)
configs = st.sampled_from(
    [
        JudgeConfig(repairs=0),
        JudgeConfig(repairs=0, locale="zh"),
        JudgeConfig(repairs=0, samples=3),
        JudgeConfig(repairs=0, samples=2, reconcile="average"),
        JudgeConfig(repairs=0, mode="letter"),
        JudgeConfig(repairs=0, ask_identical=False),
    ]
)


def moody(salt: int) -> ScriptedJudge:
    """Says anything at all, but the same to the same question."""

    def answer(call: JudgeCall) -> str | Completion:
        rng = seeded_by(call, str(salt))
        if call.letters:
            weights = [rng.random() + 0.01 for _ in call.letters]
            shares = {c: w / sum(weights) for c, w in zip(call.letters, weights, strict=True)}
            return letter_completion(shares)
        if rng.random() < 0.1:
            return "I cannot say."
        said = [(name, rng.choice(["A", "B", "TIE"])) for name in CRITERIA if rng.random() < 0.9]
        winner = rng.choice(["A", "B", "TIE"])
        return answer_json(winner, confidence=rng.choice([0.5, 0.8, None]), criteria=said)

    return ScriptedJudge(answer, Traits(caveat="it is moody"))
