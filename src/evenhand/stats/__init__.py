"""From verdicts to conclusions. Pure functions of numbers; nothing here knows a judge.

Rows come in by `outcomes`, `columns` and `clusters`; `intervals`, `always_valid`, `estimates`,
`proportions` and `logistic_regression` are shared; the subjects are `rates`, `ranking`, `stopping`,
`agreement`, `calibration`, `juries` and `correction`.
"""
