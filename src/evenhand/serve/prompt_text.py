"""What a judge is shown, as one text: for agents that want to see it before they trust it."""

from __future__ import annotations

from evenhand.contract import ORDERS, Criterion, Pair
from evenhand.prompts import Prompt
from evenhand.runs import JudgePlan

# Stands where a client's texts would.
EXAMPLE = Pair(
    prompt="‹the prompt›",
    response_a="‹the first response›",
    response_b="‹the second response›",
    criteria=(Criterion(name="‹a criterion›"),),
)


def prompt_text(pair: Pair, plan: JudgePlan) -> str:
    judge, procedure = plan.judge, plan.procedure
    if not judge.traits.needs_prompt:
        return f"{judge.name} reads no prompt: its answers were recorded, or follow a rule.\n"
    mode = procedure.mode_for(judge)
    filled = Prompt.of(pair, procedure.template_for(mode))
    letters = mode == "letter"
    questions = filled.questions() if letters else ("",)
    asked = ["whole", *(f"criterion {number}" for number in range(1, len(questions)))]
    parts: list[str] = []
    for order in ORDERS if pair.swap_positions else ORDERS[:1]:
        for question, what in zip(questions, asked, strict=True):
            which = f" · {what}" if letters else ""
            parts += [
                f"──── {order} pass{which} · {message.role} ────\n{message.text}\n"
                for message in filled.messages(
                    order, question=question, lead_in=letters and judge.traits.continues
                )
            ]
    parts.append(f"──── {filled.template.version} ────")
    return "\n".join(parts)
