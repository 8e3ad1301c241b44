"""The command line: arguments, exit codes and looks. The work is done in the rooms before it."""
