"""A run on a cluster: shards of pairs go to workers that run the same engine as one machine does.

driver                                        worker, one an actor
executor ─ pool ─┬─ shards, ledger             worker ─ shards, lease
                 └──── Grant ────────────────►          └─ LocalExecutor ─► store
                  ◄─── WorkerReport ──────────
"""
