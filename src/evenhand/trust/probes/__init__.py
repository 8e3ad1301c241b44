"""Probes: pairs whose verdict is known without a person's label. `texts` are made into `cases`,
`runs` asks a judge about them, `scores` counts what it said.
"""
