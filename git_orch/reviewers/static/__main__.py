"""`python -I -m git_orch.reviewers.static`, run by the supervisor with the tree as its current folder."""

from __future__ import annotations

import os
import sys

from git_orch.errors import EXIT_PASS, EXIT_USAGE
from git_orch.reviewers.static.request import answer, read_request, unable, write_answer
from git_orch.reviewers.static.review import review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def main(environ: Mapping[str, str]) -> int:
    """The answer is in the file that the request names; exit code 0, whatever it says."""
    missing = [name for name in ("ORCH_RESULT", "ORCH_NONCE", "ORCH_FILES", "ORCH_DIFF") if name not in environ]
    if missing:
        sys.stderr.write(f"static: {' '.join(missing)} not set: `git orch review` runs this reviewer\n")
        return EXIT_USAGE
    try:
        request = read_request(environ)
    except OSError as error:
        unread = unable(environ["ORCH_NONCE"], f"cannot read the request: {error.strerror}")
        write_answer(environ["ORCH_RESULT"], unread)
        return EXIT_PASS
    reviewed = review(request, environ)
    write_answer(request.result, answer(request, reviewed.told, reviewed.note))
    return EXIT_PASS


if __name__ == "__main__":
    raise SystemExit(main(os.environ))
