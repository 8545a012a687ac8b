"""`python3 -m hpo_dryrun`, and `python3 FOLDER/hpo_dryrun` where the package is in no path of Python's."""

import os
import sys

if not __package__:
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from hpo_dryrun.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
