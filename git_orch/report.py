"""A run's record: written by its supervisor or by the reaper, read back as the report that the formats print."""

from __future__ import annotations

import os
import time

from git_orch import runs
from git_orch.model import UNLIMITED, Base, Change, Coverage, Finding, Record, Report, Review, Skipped, Usage, utc_stamp
from git_orch.reviewers.reading import RULE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from git_orch.model import Json, Status, Verdict
    from git_orch.registry import Intent


class Ended(Record):
    """How a run ended, and what came of it."""

    status: Status
    terminal_reason: str
    verdict: Verdict
    reason: str = ""
    supervisor_pid: int = 0
    jobs: tuple[Json, ...] = ()
    reviews: tuple[Review, ...] = ()
    change: Change = Change()
    materialized: str = ""
    timings_ms: Mapping[str, int] = {}
    usd_today: float = 0.0


def record_json(intent: Intent, ended: Ended) -> Json:
    """The run as `record.json` has it: what it was asked to do, and how it ended just now."""
    usage = [review.usage for review in ended.reviews]
    return {
        **intent.to_json(),
        "reviewers": [review_json(review) for review in ended.reviews],
        "asked": [reviewer.fields() for reviewer in intent.reviewers],
        "base": {"tree_id": intent.base_tree_id, "name": intent.base_name, "commit": intent.base_commit},
        "change": ended.change.fields(),
        # `runs.has_ended` finds these two by their standing side by side.
        "status": ended.status,
        "terminal_reason": ended.terminal_reason,
        "verdict": ended.verdict,
        "reason": ended.reason,
        "materialized": ended.materialized,
        "timings_ms": dict(ended.timings_ms),
        "finished_at": utc_stamp(time.time()),
        "worktree_gone": not os.path.isdir(intent.worktree_path or intent.git_dir),
        "supervisor_pid": ended.supervisor_pid,
        "jobs": list(ended.jobs),
        "usd_today": round(ended.usd_today, 6),
        "cpu_s": round(sum(each.cpu_s for each in usage), 3),
        "peak_rss_bytes": max((each.peak_rss_bytes for each in usage), default=0),
    }


def load(run_dir: str, *, reused: bool = False) -> Report | None:
    """The report of a run that has ended, or None while it has not, or where its record is of another version."""
    record = runs.final_record(run_dir)
    if record is None:
        return None
    try:
        return _of(record, run_dir, reused)
    except (KeyError, TypeError, AttributeError):
        return None


def _of(record: Json, run_dir: str, reused: bool) -> Report:
    found = tuple(Finding(**_known(Finding, item)) for item in _list(run_dir, "findings.json", "findings"))
    covered = runs.read(run_dir, "coverage.json") or {}
    return Report(
        run_id=record["run_id"],
        tree_id=record["tree_id"],
        base=Base(**_known(Base, record["base"])),
        subject=record["subject"],
        verdict=record.get("verdict", "unreviewed"),
        reason=record.get("reason", ""),
        status=record["status"],
        findings=found,
        coverage=_coverage(covered),
        reviews=tuple(_review(item, found, covered) for item in record.get("reviewers", ()) if "outcome" in item),
        change=Change(**_known(Change, record.get("change", {}))),
        materialized=record.get("materialized", ""),
        timings_ms=record.get("timings_ms", {}),
        run_dir=run_dir,
        reused=reused,
        usd_today=record.get("usd_today", 0.0),
        usd_limit=record.get("budget", {}).get("usd", UNLIMITED),
    )


def coverage_json(coverage: Coverage, reviews: tuple[Review, ...]) -> Json:
    """Coverage as `coverage.json` has it: what each reviewer read, what it left out, what of that a rule excuses."""
    return {
        "schema_version": "1",
        **coverage.fields(),
        "skipped": [skip.fields() for skip in coverage.skipped],
        "by_reviewer": {review.name: review.reviewed for review in reviews},
        "excused": {review.name: [skip.path for skip in review.skipped if _is_by_rule(skip)] for review in reviews},
        "skipped_by": {review.name: [skip.fields() for skip in review.skipped] for review in reviews if review.skipped},
    }


def review_json(review: Review) -> Json:
    """A reviewer as `record.json` has it; its findings and paths are in the other files, here only their number."""
    fields = review.fields()
    fields.update(findings=len(review.findings), reviewed=len(review.reviewed), skipped=len(review.skipped))
    fields["usage"] = review.usage.fields()
    return fields


def _review(item: Json, found: tuple[Finding, ...], covered: Json) -> Review:
    known = _known(Review, item)
    name = known["name"]
    known["findings"] = tuple(finding for finding in found if finding.reviewer == name)
    known["reviewed"] = tuple(covered.get("by_reviewer", {}).get(name, ()))
    known["skipped"] = tuple(Skipped(**_known(Skipped, each)) for each in covered.get("skipped_by", {}).get(name, ()))
    for listed in ("littered", "adjusted"):
        known[listed] = tuple(known.get(listed, ()))
    known["usage"] = Usage(**_known(Usage, known.get("usage", {})))
    return Review(**known)


def _coverage(covered: Json) -> Coverage:
    return Coverage(
        offered=tuple(covered.get("offered", ())),
        reviewed=tuple(covered.get("reviewed", ())),
        skipped=tuple(Skipped(**_known(Skipped, item)) for item in covered.get("skipped", ())),
        withheld=tuple(covered.get("withheld", ())),
    )


def _is_by_rule(skip: Skipped) -> bool:
    return skip.reason.startswith(RULE)


def _list(run_dir: str, name: str, key: str) -> list[Json]:
    value = (runs.read(run_dir, name) or {}).get(key, [])
    return value if isinstance(value, list) else []


def _known(kind: type[Record], item: Json) -> Json:
    """The fields of the object that a record of that kind has: a newer version may have written more."""
    return {name: item[name] for name in kind._fields if name in item}
