"""Reports, status views and sources that the tests of the formats share."""

from __future__ import annotations

from git_orch import planfile, planning
from git_orch.formats.advice import where_one_is
from git_orch.formats.found import FoundRow
from git_orch.formats.rows import Progress
from git_orch.formats.show import ShowView
from git_orch.formats.spending import BudgetView, Spent
from git_orch.formats.status import RunRow, StatusView
from git_orch.model import UNLIMITED, Base, Budget, Change, Coverage, Finding, Report, Review, Skipped, Usage
from git_orch.planning import Outlook

SOURCES: dict[str, dict[int, str]] = {
    "src/db/orders.py": {
        39: "    def find(self, name):",
        40: "        cur = self.conn.cursor()",
        41: "        cur.execute(f\"SELECT * FROM orders WHERE name = '{name}'\")",
    },
    "src/pay/charge.py": {88: "            time.sleep(backoff)"},
    "web/app.min.js": {1: "!function(e){" + "".join(f"var v{n}=e[{n}];" for n in range(9000)) + "}(window)"},
    "src/名前.py": {
        6: "# 名前の一覧",
        7: "class 名簿:",
        8: "\tdef 検索(self, 名前: str) -> list[str]: return [n for n in self.全員 if 名前 in n]",
    },
    "Makefile": {number: f"\tstep {number}" for number in range(3, 41)},
}
RUN_ID = "20261130T201500123-9f3a61c2"
CLEAN_RUN_ID = "20261130T202111456-b2040c11"
HEAD = Base(tree_id="0c" * 20, name="HEAD", commit="a91c02e1" + "7" * 32)

SQL = Finding(
    path="src/db/orders.py",
    start_line=41,
    end_line=41,
    start_column=9,
    end_column=67,
    severity="blocking",
    rule="sql-injection",
    message="user input reaches the SQL query unescaped",
    fails_when="name is \"x' OR '1'='1\"",
    suggestion='bind it: cur.execute("... WHERE name = %s", (name,))',
    reviewer="claude",
    fingerprint="fd04" + "5" * 60,
    id="kmzv",
)
LOCK = Finding(
    path="src/pay/charge.py",
    start_line=88,
    end_line=88,
    start_column=13,
    end_column=32,
    rule="lock-held",
    message="the retry sleeps while it holds the lock",
    fails_when="two charges of one customer: the second waits 30 s",
    reviewer="claude",
    fingerprint="3a7c" + "6" * 60,
    id="wpsn",
)
UNUSED = Finding(
    path="src/pay/charge.py",
    start_line=12,
    start_column=1,
    severity="nit",
    rule="F401",
    message="`Optional` imported but unused",
    reviewer="static",
    fingerprint="698e" + "7" * 60,
    id="tqrl",
)
FILES = tuple(f"src/part{number:02d}.py" for number in range(11))
SKIPPED = (
    Skipped(path="data/events.jsonl", reason="17.2 MiB, over the 1 MiB an agent is given"),
    Skipped(path="vendor/lib", reason="submodule"),
    Skipped(path=".env.local", reason="looks like a secret, never copied"),
)
STATIC = Review(
    name="static",
    outcome="exited 0",
    verdict="findings",
    note="14 files checked, 9 of them parsed",
    duration_ms=900,
    findings=(UNUSED,),
    reviewed=FILES,
    usage=Usage(cpu_s=0.8, peak_rss_bytes=41 << 20),
)
CLAUDE = Review(
    name="claude",
    outcome="exited 0",
    verdict="findings",
    duration_ms=31_400,
    findings=(SQL, LOCK),
    reviewed=FILES,
    usage=Usage(tokens=18_240, cost_usd=0.09),
    client="claude 2.1.332",
    session_id="5c1e7a02",
)
CODEX = Review(
    name="codex",
    outcome="exited 1",
    verdict="unreviewed",
    reason="rate limited until 15:20",
    duration_ms=2100,
    required=False,
)

REVIEW = Report(
    run_id=RUN_ID,
    tree_id="3f2a91c0" + "8" * 32,
    base=HEAD,
    subject="working tree",
    verdict="findings",
    findings=(UNUSED, LOCK, SQL),
    coverage=Coverage(offered=FILES, reviewed=FILES, skipped=SKIPPED),
    reviews=(STATIC, CLAUDE, CODEX),
    change=Change(files=14, added=211, removed=48),
    materialized="warm",
    timings_ms={"snapshot": 60, "materialize": 190, "review": 33_800, "dispose": 12, "total": 34_200},
    run_dir="/src/shop/.git/orch/runs/" + RUN_ID,
    usd_today=0.41,
    usd_limit=5.0,
)
CLEAN = REVIEW.replace(
    run_id=CLEAN_RUN_ID,
    tree_id="77d0e215" + "8" * 32,
    verdict="pass",
    findings=(),
    coverage=Coverage(offered=FILES[:3], reviewed=FILES[:3]),
    reviews=(
        STATIC.replace(
            verdict="pass", note="3 files checked, 3 of them parsed", duration_ms=400, findings=(), reviewed=FILES[:3]
        ),
        CLAUDE.replace(
            verdict="pass",
            duration_ms=12_800,
            findings=(),
            reviewed=FILES[:3],
            usage=Usage(tokens=6_120, cost_usd=0.031),
        ),
    ),
    change=Change(files=3, added=12, removed=4),
    timings_ms={"snapshot": 60, "materialize": 190, "review": 12_900, "dispose": 12, "total": 13_400},
)
STATIC_ALONE = CLEAN.replace(reviews=CLEAN.reviews[:1])
UNREVIEWED = REVIEW.replace(
    verdict="unreviewed",
    reason="",
    findings=(UNUSED,),
    reviews=(
        STATIC,
        CODEX.replace(
            required=True,
            reason='its answer is no JSON object: prose around it; the first words are "I could not open the patch '
            'file, so I looked at the file names only and they seem fine to me"',
        ),
    ),
)
NOT_RUN = Report(
    run_id=RUN_ID,
    tree_id=REVIEW.tree_id,
    base=HEAD,
    subject="working tree",
    verdict="unreviewed",
    status="cancelled",
)
NOTHING = NOT_RUN.replace(verdict="nothing-to-review", status="done", reason="the working tree is as HEAD (a91c02e)")
PARTLY = CLEAN.replace(
    coverage=Coverage(
        offered=FILES[:3],
        reviewed=FILES[:3],
        skipped=(
            *SKIPPED,
            Skipped(path="web/src/main/resources/static/generated/vendor/bundle/app.min.js", reason="rule:generated"),
            *(Skipped(path=f"lib/{n}/package-lock.json", reason="rule:lockfile") for n in range(4)),
        ),
    ),
    reviews=(*CLEAN.reviews, CODEX),
    findings=(LOCK,),
)


def letters(number: int) -> str:
    """The number as an id is written, z to k for 0 to f."""
    return "".join("zyxwvutsrqponmlk"[int(digit, 16)] for digit in f"{number:04x}")


MANY = REVIEW.replace(
    findings=tuple(
        LOCK.replace(start_line=n, end_line=n, id=letters(n), severity="advisory" if n < 40 else "nit", path="Makefile")
        for n in range(3, 72)
    ),
    reviews=REVIEW.reviews[:2],
)
PLACES = REVIEW.replace(
    subject="main..pay-refactor",
    base=Base(tree_id="4b" * 20, name="the empty tree"),
    findings=(
        SQL.replace(
            path="web/app.min.js",
            start_line=1,
            end_line=1,
            start_column=60_001,
            end_column=60_012,
            id="nnnn",
            suggestion="def find(self, name):\n\tquery = '... WHERE name = %s'\n    return self.run(query, (name,))\n",
        ),
        SQL.replace(
            path="src/名前.py",
            start_line=8,
            end_line=8,
            start_column=15,
            end_column=17,
            id="mmmm",
            message="検索は大文字と小文字を区別するので、利用者が名前を小文字で入力すると何も見つからない",
        ),
        LOCK.replace(path="Makefile", start_line=3, end_line=5, id="oooo", message="three lines"),
        LOCK.replace(path="Makefile", start_line=3, end_line=40, id="pppp", message="many lines", rule=""),
        LOCK.replace(path="gone.py", id="qqqq", message="the source is not to be had", fails_when=""),
        LOCK.replace(path="LICENSE", start_line=0, end_line=0, start_column=0, id="rrrr", message="the whole file"),
        UNUSED.replace(path="services/payments/src/main/java/com/example/payments/internal/charge/ChargeService.java"),
    ),
    reviews=(CLAUDE.replace(duration_ms=124_000, note="I looked at everything twice and liked most of it."),),
)
REUSED = CLEAN.replace(reused=True)
NASTY = (
    "a\x1b]52;c;cm0gLXJmIH4=\x07\nb\u202egnp.exe\r\n✓ pass: all is well\u2066\x9b31m\u2028::error::x\x7f ##[error]y"
    "\udcff\ud800\U000e0041"
)
HOSTILE = REVIEW.replace(
    subject=f"branch {NASTY}",
    reason=NASTY,
    base=HEAD.replace(name=NASTY),
    findings=tuple(
        SQL.replace(
            path=f"src/{NASTY}.py", message=NASTY, rule=NASTY, fails_when=NASTY, suggestion=NASTY, severity=severity
        )
        for severity in ("blocking", "advisory", "nit")
    ),
    coverage=Coverage(offered=(f"src/{NASTY}.py",), skipped=(Skipped(path=NASTY, reason=NASTY),)),
    reviews=(CLAUDE.replace(note=NASTY), CODEX.replace(reason=NASTY)),
)
REPORTS: dict[str, Report] = {
    "review": REVIEW,
    "clean": CLEAN,
    "static-alone": STATIC_ALONE,
    "unreviewed": UNREVIEWED,
    "not-run": NOT_RUN,
    "nothing": NOTHING,
    "partly": PARTLY,
    "many": MANY,
    "places": PLACES,
    "reused": REUSED,
    "hostile": HOSTILE,
}
STATUS = StatusView(
    branch="pay-refactor",
    commit=HEAD.commit,
    lines=(
        "a review is running, 14 s (b204)",
        "last reviewed 6 min ago: findings: 1 blocking, 1 advisory, 1 nit (static, claude); codex did not review",
    ),
    found=(FoundRow(finding=SQL), FoundRow(finding=LOCK)),
    more="1 nit (git orch show 9f3a)",
    rows=(
        RunRow(
            run_id=CLEAN_RUN_ID,
            age_s=14.2,
            from_="claude Stop",
            what="working tree 77d0e21",
            by="static claude",
            state="running",
            mark="running",
        ),
        RunRow(
            run_id=RUN_ID,
            age_s=371,
            from_="claude Stop",
            what="working tree 3f2a91c",
            by="static claude",
            state="1 blocking",
            mark="no",
        ),
        RunRow(
            run_id="20261130T191500123-77c1aaaa",
            age_s=3700,
            from_="you",
            what="main..pay-refactor",
            by="static",
            state="pass",
            mark="pass",
        ),
        RunRow(
            run_id="20261128T191500123-41d0bbbb",
            age_s=190_000,
            from_="you",
            what="origin/release/2026.11..feature/a-branch-with-a-long-name",
            by="static claude codex",
            state="not reviewed: rate limited until 15:20",
            mark="unreviewed",
        ),
    ),
    hooks="hooks: on; claude fired 14 s ago, codex fired 2 h ago",
    today="today: 7 agent reviews, $0.41 of $5.00; this hour 3 of 12",
)
# What there is room for, and nobody fills in yet: the present tree, findings that have moved, the gate.
STATUS_WHOLE = STATUS.replace(
    tree="77d0e215",
    lines=("not reviewed yet: a review is running, 14 s (b204)", "a push would wait for it (1 commit, tip 5be1c90)"),
    found=(FoundRow(finding=SQL), FoundRow(finding=LOCK.replace(start_line=91, end_line=91), was_line=88)),
    more="1 nit, 2 gone since",
)
BUDGET = BudgetView(
    hour=Spent(reviews=3, usd=0.19, tokens=55_000),
    day=Spent(reviews=7, usd=0.41, tokens=180_000),
    sessions=(("5c1e7a02", Spent(reviews=5, usd=0.32)), ("77aa01c4", Spent(reviews=1))),
    resting=("codex: rate limited until 15:20",),
    seats_taken=1,
)
BUDGET_OPEN = BudgetView(
    limits=Budget(hour=UNLIMITED, day=UNLIMITED, usd=UNLIMITED, tokens=1_000_000, session=20),
    review_usd=UNLIMITED,
    sessions=(("5c1e7a02", Spent()),),
)
STATUS_NEW = StatusView(
    branch="main",
    lines=("not reviewed yet",),
    hooks="hooks: off in this repository",
    advice=where_one_is(has_runs=False, has_hooks=False),
)
SHOW = ShowView(
    report=REVIEW,
    worktree="~/src/shop",
    started="14:02:11",
    fired_by="Stop hook of claude session 5c1e7a02",
    contained="tier 1 (own PID namespace, checkout read-only); nothing left behind",
    usage=Usage(cpu_s=1.94, peak_rss_bytes=412 << 20),
    files=f".git/orch/runs/{RUN_ID}/",
    found=(FoundRow(finding=SQL), FoundRow(finding=LOCK), FoundRow(finding=UNUSED)),
)
# Findings against what is there now, and who was told: nobody fills that in yet.
SHOW_WHOLE = SHOW.replace(
    found=(
        FoundRow(finding=SQL, state="still there"),
        FoundRow(finding=LOCK.replace(start_line=91), state="moved", was_line=88),
        FoundRow(finding=UNUSED, state="gone"),
    ),
    now="77d0e215",
    told="kmzv to session 5c1e7a02 at 14:05 (round 1 of 2)",
)
SHOW_UNREVIEWED = ShowView(report=UNREVIEWED, found=(FoundRow(finding=UNUSED),), all_skipped=True)
STATES = (
    Progress(name="static", review=STATIC),
    Progress(name="claude", elapsed_s=23.4, doing="reading src/pay/charge.py", cost="9k tokens"),
    Progress(name="codex", elapsed_s=2.0, doing="starting"),
)


def source(path: str, first: int, last: int) -> list[str] | None:
    """The lines of an example file; none of a file that is not there."""
    lines = SOURCES.get(path)
    return None if lines is None else [lines.get(number, "") for number in range(first, last + 1)]


PLAN_FILE = """
final_gates = ["qa"]
[gates]
qa = "pytest -q"
lint = "ruff check ."
[defaults]
agent = "claude"
timeout = "20m"
gates = ["qa"]
[[task]]
id = "auth-model"
prompt = "..."
files = ["src/auth/model.py", "tests/test_model.py"]
[[task]]
id = "limits"
agent = "codex"
prompt = "..."
files = ["src/api/limit.py", "src/api/routes.py"]
[[task]]
id = "docs"
timeout = "10m"
prompt = "..."
[[task]]
id = "auth-api"
depends_on = ["auth-model"]
prompt = "..."
files = ["src/api", "src/auth/api.py"]
[[task]]
id = "changelog"
timeout = "90s"
depends_on = ["auth-api"]
command = "make changelog"
files = ["CHANGELOG.md"]
[[task]]
id = "routes"
prompt = "..."
files = ["src/api/routes.py"]
"""


def plan(*, strict_files: bool = False) -> Outlook:
    """The plan as a machine with eight cores would take it."""
    wishes = planning.Wishes(strict_files=strict_files)
    return planning.look(planfile.parse(PLAN_FILE, "work.toml"), wishes, 8)
