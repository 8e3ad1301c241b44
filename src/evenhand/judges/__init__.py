"""Judges, opened by `open_judge("openai:…")`.

`protocol` says what a judge is, `registry` which module opens it, `retry` when it is asked again,
`prepared` has another model write for it, `prices` what a call costs, `redaction` keeps secrets out
of texts, `addresses` where servers are, `families` which models are related. The judges: `openai`
(by `chat_completions` over a `transport`), `fleet`, `providers` (pydantic-ai), `local` (with
`llama_server` and `embedded_model`), `replay`, `baseline`, `function`, `command`; `batch` has the
providers' batch APIs. Each is imported only when opened.
"""
