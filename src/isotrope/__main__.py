"""``python -m isotrope`` is the command line."""

from isotrope.cli import main

main()
