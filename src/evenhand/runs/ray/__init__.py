"""A run on a cluster: shards of pairs go to workers that run the same engine as one machine does.

driver                                        worker, one an actor
executor ─ crew ─┬─ shards, ledger, permits    worker ─ shard_supply, lease, leased_pace
                 └──── Grant ────────────────►          └─ LocalExecutor ─► store
                  ◄─── Report ────────────────
"""
