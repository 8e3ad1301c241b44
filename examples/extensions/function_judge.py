"""A judge from a plain function: the prompt's text in, the model's text out.

The function may be async; one that is not runs in a thread. Replace its body with a call to your
model: this one names the response with more digits, so the example needs no key.
"""

from __future__ import annotations

import re

import evenhand


@evenhand.judge(name="digits", version="1")
def digits(prompt: str) -> str:
    first, second = re.findall(r"<<<\w+ Response [AB]>>>\n(.*?)\n<<<end", prompt, re.DOTALL)
    count_a, count_b = (len(re.findall(r"\d", text)) for text in (first, second))
    return "A" if count_a > count_b else "B" if count_b > count_a else "TIE"


def main() -> None:
    verdict = evenhand.compare_sync(
        prompt="When did Canberra become the capital of Australia?",
        a="Long ago.",
        b="It was chosen in 1908, and Parliament moved there in 1927.",
        criteria=["specificity"],
        judge=digits,
    )
    print(verdict.winner, verdict.outcome)


if __name__ == "__main__":
    main()
