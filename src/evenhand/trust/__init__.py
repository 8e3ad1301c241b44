"""Should this judge be believed? People's labels (`votes`, `vote_files`, `labelling`,
`label_queue`, `label_samples`), verdicts beside them (`labelled_verdicts`), then what follows:
`audit` with `biases`, `baselines` and `findings`; `calibration`; `panels` and
`jury`; `predictions` (one verdict a pair, of a judge or a jury); `cascades`; `correction`;
`criteria` that agree with people; and `probes`, which need no labels.
"""
