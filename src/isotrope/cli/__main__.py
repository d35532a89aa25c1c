"""``python -m isotrope.cli`` is ``python -m isotrope``."""

from isotrope.cli import main

main()
