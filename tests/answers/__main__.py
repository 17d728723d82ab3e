"""`python -m tests.answers`."""

import sys

from tests import answers
from tests.recorded import command

sys.exit(command("tests.answers", answers.__doc__.splitlines()[0], answers.cases(), answers.file_of))
