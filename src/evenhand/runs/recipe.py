"""How to open a judge again in another process: by its name and its options, without its key."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand.judges import Judge, JudgeOptions, open_judge
from evenhand.settings import load_settings


@dataclass(frozen=True, slots=True)
class JudgeRecipe:
    spec: str
    options: JudgeOptions

    @classmethod
    def of(cls, spec: str, options: JudgeOptions) -> JudgeRecipe:
        return cls(spec.strip(), replace(options, api_key=None, cache_dir=None))

    def open(self) -> Judge:
        """With the key of the process that it is opened in."""
        if not self.spec.startswith("openai:"):
            return open_judge(self.spec, self.options)
        return open_judge(self.spec, replace(self.options, api_key=load_settings().api_key))
