"""`python -m evenhand` is the command `evenhand`."""

from evenhand.cli.main import main

main()
