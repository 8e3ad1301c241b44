"""The Agent Skill: what a coding agent reads to know when and how to use evenhand.

The texts are in `evenhand/`, a skill as it stands (agentskills.io); `places` knows where agents
look, `writing` puts it there.
"""

from evenhand.skill.places import AGENTS, skill_folders
from evenhand.skill.writing import NAME, Written, skill_texts, write_skill

__all__ = [
    "AGENTS",
    "NAME",
    "Written",
    "skill_folders",
    "skill_texts",
    "write_skill",
]
