"""GET /admin/v1/jobs: jobs across tenants, those that were given up among them."""

import msgspec
from litestar import Router, get
from litestar.di import Provide

from accounting.tenants import TenantNotFound
from gateway.native import parameters
from gateway.native.admin import ADMIN
from gateway.native.jobs import StateFilter
from gateway.native.parameters import Window
from jobs import operations
from jobs.operations import OperatorFilter, OperatorJob
from jobs.vocabulary import CompletionReason
from runtime.database import Database


class OperatorJobList(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of all tenants, newest first; `next` is null at the end."""

    items: list[OperatorJob]
    next: str | None


def wanted_jobs(
    tenant_id: str | None = None,
    job_state: StateFilter = None,
    completion_reason: CompletionReason | None = None,
) -> OperatorFilter:
    return OperatorFilter(
        tenant_id=parameters.tenant_id(tenant_id, TenantNotFound) if tenant_id else None,
        state=job_state,
        completion_reason=completion_reason,
    )


@get("/jobs", opt=ADMIN, dependencies={"wanted": Provide(wanted_jobs, sync_to_thread=False)})
async def list_all_jobs(
    system: Database, wanted: OperatorFilter, window: Window
) -> OperatorJobList:
    """Lists jobs of all tenants, newest first."""
    async with system.connection() as connection:
        found, following = await operations.newest(
            connection, wanted, after=window.after, limit=window.limit
        )
    return OperatorJobList(items=found, next=following)


ROUTER = Router("/", route_handlers=[list_all_jobs], tags=["Administration"])
