"""``python -m servingplan``: the command line."""

from servingplan.cli import main

main()
