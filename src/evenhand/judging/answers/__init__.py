"""A judge's text to a ballot or an unread answer. `reader` takes a text and sets thinking aside;
`json_answer` reads the format that our prompts ask for; `recognition` finds the verdict in any
other text, by `quotations`, `labelled_lines`, `protocols` and `sentences`; `vocabulary` and
`results` are what they share.
"""
