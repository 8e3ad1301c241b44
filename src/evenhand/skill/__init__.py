"""The Agent Skill: what a coding agent reads to know when and how to use evenhand.

The texts are in `evenhand/`, a skill as it stands (agentskills.io); `installation` puts it where
agents look.
"""

from evenhand.skill.installation import (
    AGENTS,
    NAME,
    Written,
    skill_folders,
    skill_texts,
    write_skill,
)

__all__ = [
    "AGENTS",
    "NAME",
    "Written",
    "skill_folders",
    "skill_texts",
    "write_skill",
]
