"""What a client's hook runs: `PYTHON -I -S hook.py EVENT [CLIENT]`. Short, since a script is compiled each time."""

import sys

if __name__ == "__main__":
    sys.path.append(__file__.rpartition("/git_orch/")[0] or __file__.replace("\\", "/").rpartition("/git_orch/")[0])
    from git_orch.trigger import leave, main

    leave(main(sys.argv))
