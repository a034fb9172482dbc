"""What a client's hook runs: `PYTHON -I -S hook.py EVENT`. A script is compiled at each start, so it is short."""

import sys

if __name__ == "__main__":
    sys.path.append(__file__.rpartition("/git_orch/")[0] or __file__.replace("\\", "/").rpartition("/git_orch/")[0])
    from git_orch.trigger import leave, main

    main(sys.argv)
    leave()
