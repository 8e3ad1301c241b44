"""From verdicts to conclusions. Pure functions of numbers; nothing here knows a judge."""
