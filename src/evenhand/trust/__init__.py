"""Should this judge be believed? People's labels (`vote_files`, `labelling`, `label_queue`,
`pair_draws`), verdicts beside them (`labelled_verdicts`), then what follows: `audit` with `biases`,
`pass_counts` and `findings`; `preparation_trials`; `calibration`; `panels` (several judges on the
same pairs); `cascades`; `criteria` that agree with people; and `probes`, which need no labels.
`saved_files` keeps what was learned.
"""
