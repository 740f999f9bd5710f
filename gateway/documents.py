"""A statement as a PDF, where the extra `pdf` is installed."""

from pathlib import Path
from typing import Any

import msgspec

from accounting.statements import Statement
from gateway import tables

PDF = "application/pdf"
TEMPLATE = Path(__file__).with_name("statement.typ")
HEAD = ("Line", "Prior period", "Entries", "Credits", "Effect")


def statement_pdf(statement: Statement) -> bytes:
    """The same statement makes the same bytes; raises Refusal where the extra is missing."""
    typst = tables.load_extra("pdf", "typst")
    data = msgspec.json.encode(shown(statement)).decode()
    made: bytes = typst.compile(
        TEMPLATE.read_bytes(), format="pdf", sys_inputs={"data": data}, timestamp=0
    )
    return made


def shown(statement: Statement) -> dict[str, Any]:
    """What the template reads: texts and whole numbers."""
    closed = statement.closed_at
    return {
        "title": f"Credits, {statement.period}" if statement.period else "Credits",
        "span": f"Entries recorded from {statement.starts_at:%Y-%m-%d %H:%M:%S} "
        f"until just before {statement.ends_at:%Y-%m-%d %H:%M:%S} UTC.",
        "tenant": str(statement.tenant_id),
        "head": HEAD,
        "rows": [
            ["Opening balance", "", "", "", statement.opening.total],
            *(
                [line.kind, line.prior_period or "", line.entries, line.credits, line.effect]
                for line in statement.lines
            ),
            ["Closing balance", "", "", "", statement.closing.total],
            ["of it held", "", "", "", statement.closing.held],
        ],
        "held": [
            *([str(one.job_id), one.credits] for one in statement.held_by_job),
            *([["Other jobs", others]] if (others := statement.held_by_other_jobs) else []),
        ],
        "ending": "This period is open: its lines can still grow."
        if closed is None
        else f"Closed on {closed:%Y-%m-%d} (UTC); this statement does not change any more.",
    }
