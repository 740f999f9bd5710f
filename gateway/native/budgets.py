"""/v1/budgets: caps on tenant, keys and tags; notices, and the alert that makes them."""

from typing import Annotated

import msgspec
from litestar import Router, delete, get, put
from msgspec import Meta

from accounting import budgets
from accounting.budgets import Budget, BudgetRequest, Notice
from accounting.keys import Principal
from gateway.bodies import StrictJson
from gateway.native import parameters
from gateway.native.parameters import Window
from runtime.database import Database
from runtime.errors import Refusal

READ = {"scope": "billing:read"}
WRITE = {"scope": "keys:write"}


class BudgetList(msgspec.Struct, frozen=True, kw_only=True):
    """All caps of a tenant, with where their running periods stand."""

    items: list[Budget]
    next: str | None = None


class Alert(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Below how many available credits a notice is made; null makes none."""

    low_credits: Annotated[int, Meta(ge=0, le=1_000_000_000_000_000)] | None


class NoticeList(msgspec.Struct, frozen=True, kw_only=True):
    """Notices, oldest first; `next` is null at the end."""

    items: list[Notice]
    next: str | None


@get("/budgets", opt=READ)
async def list_budgets(principal: Principal, database: Database) -> BudgetList:
    async with database.transaction(principal.tenant_id) as tx:
        return BudgetList(items=await budgets.list_all(tx, principal.tenant_id))


@put("/budgets", dto=StrictJson, return_dto=None, opt=WRITE)
async def put_budget(data: BudgetRequest, principal: Principal, database: Database) -> Budget:
    """Sets the cap of a tenant, a key or a tag for a day, a month or ever; again changes it."""
    async with database.transaction(principal.tenant_id) as tx:
        budget_id = await budgets.put(tx, principal.tenant_id, data)
        listed = await budgets.list_all(tx, principal.tenant_id)
    return next(budget for budget in listed if budget.budget_id == budget_id)


@delete("/budgets/{budget_id:str}", opt=WRITE)
async def remove_budget(budget_id: str, principal: Principal, database: Database) -> None:
    """Takes a cap away."""
    wanted = parameters.tenant_id(budget_id, no_budget)
    async with database.transaction(principal.tenant_id) as tx:
        await budgets.remove(tx, principal.tenant_id, wanted)


@put("/credits/alert", dto=StrictJson, return_dto=None, opt=WRITE)
async def set_alert(data: Alert, principal: Principal, database: Database) -> Alert:
    """Sets when credits count as low: a notice `credits.low` is made once each time they are."""
    async with database.transaction(principal.tenant_id) as tx:
        await budgets.alert_below(tx, principal.tenant_id, data.low_credits)
    return data


@get("/credits/notices", opt=READ)
async def list_notices(principal: Principal, database: Database, window: Window) -> NoticeList:
    """Lists what the tenant should have heard of: credits.low and budget.low."""
    start = parameters.index_cursor(window.after, start=0, end=parameters.ENTRY_MAX)
    async with database.transaction(principal.tenant_id) as tx:
        found = await budgets.notices(tx, principal.tenant_id, after=start, limit=window.limit + 1)
    more = len(found) > window.limit
    return NoticeList(
        items=found[: window.limit], next=str(found[window.limit - 1].notice_id) if more else None
    )


def no_budget() -> Refusal:
    return Refusal("not_found", "There is no such budget.")


ROUTER = Router(
    "/",
    route_handlers=[list_budgets, put_budget, remove_budget, set_alert, list_notices],
    tags=["Budgets"],
)
