"""``python -m servingplan.cli``: the program where its script is not installed."""

from servingplan.cli import main

main()
