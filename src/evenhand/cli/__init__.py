"""The command line: arguments, exit codes and output; the work is done in the rooms before it.

`main` lists the commands: a module a command, with what it prints. They share `options` and
`inputs` (arguments to values), `session` (streams, errors, store), `judging` and `progress` (a run
on the terminal), `terminal` and `figures` (text and numbers as people read them). `main` imports
every command, so none may import anything heavy at its top.
"""
