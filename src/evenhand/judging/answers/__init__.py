"""A judge's text to a ballot or an unread answer. `reader` takes a text and sets thinking aside;
`json_answer` reads the format that our prompts ask for; `recognition` finds the verdict in any
other text by the order of authority: objects, `marks`, `labelled_lines`, and prose (`protocols`,
`sentences`) only in short answers or by name. `quotations` says whose words they are, `reasons`
what of them explains the verdict; `vocabulary` and `results` are what all of them share.
"""
