"""/admin/v1: plans and price books."""

from typing import Annotated

import msgspec
from litestar import Router, delete, get, post, put
from msgspec import Meta

from accounting import pricing, tenants
from accounting.keys import Principal
from accounting.pricing import Outcome, PriceBook, PriceLine, Prices
from accounting.tenants import Plan, TenantNotFound
from gateway import auth, problems
from gateway.auth import KeyHints
from gateway.bodies import StrictJson
from gateway.native import parameters
from jobs.requests import KIND_OF
from jobs.vocabulary import Kind
from runtime.database import Database

ADMIN = {"scope": "admin"}


class PlanList(msgspec.Struct, frozen=True, kw_only=True):
    """All plans, by name."""

    items: list[Plan]
    next: str | None = None


class NewPriceBook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All prices from now on: one line for each outcome of each kind of job."""

    lines: Annotated[list[PriceLine], Meta(min_length=1, max_length=100)]


class OwnPrice(PriceLine, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant's own price, and why it has one."""

    reason: Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\A[^\x00]*\Z")]


@get("/plans", opt=ADMIN)
async def list_plans(system: Database) -> PlanList:
    async with system.connection() as connection:
        return PlanList(items=await tenants.plans(connection))


@put("/plans/{plan_id:str}", dto=StrictJson, return_dto=None, opt=ADMIN)
async def put_plan(plan_id: str, data: Plan, system: Database, key_hints: KeyHints) -> Plan:
    """Makes a plan, or changes it for all its tenants from now on."""
    if data.plan_id != plan_id:
        raise problems.invalid("$.plan_id", "Expected the plan's name as it is in the path")
    async with system.transaction() as tx:
        plan = await tenants.put_plan(tx, data)
    await key_hints.changed(auth.EVERYTHING)
    return plan


@get("/price-books", opt=ADMIN)
async def read_price_book(system: Database) -> PriceBook:
    """Tells the prices that a job submitted now takes with it."""
    async with system.connection() as connection:
        return await pricing.current(connection)


@post("/price-books", dto=StrictJson, return_dto=None, status_code=201, opt=ADMIN)
async def publish_price_book(data: NewPriceBook, system: Database, prices: Prices) -> PriceBook:
    """Publishes new prices; other gateways follow within seconds, running jobs keep theirs."""
    check_lines(data.lines)
    async with system.transaction() as tx:
        book = await pricing.publish(tx, data.lines)
    prices.forget()
    return book


@put("/tenants/{tenant_id:str}/prices", dto=StrictJson, return_dto=None, opt=ADMIN)
async def set_own_price(
    tenant_id: str, data: OwnPrice, principal: Principal, system: Database, prices: Prices
) -> PriceBook:
    """Gives a tenant a price of its own, for jobs that it submits from now on."""
    tenant = parameters.tenant_id(tenant_id, TenantNotFound)
    line = PriceLine(kind=data.kind, outcome=data.outcome, credits=data.credits)
    async with system.transaction() as tx:
        await pricing.set_override(tx, tenant, line, reason=data.reason, actor=principal.key_id)
        book = await pricing.of_tenant(tx, tenant)
    prices.forget()
    return book


@delete("/tenants/{tenant_id:str}/prices/{kind:str}/{outcome:str}", opt=ADMIN)
async def drop_own_price(
    tenant_id: str, kind: Kind, outcome: Outcome, system: Database, prices: Prices
) -> None:
    """Takes a tenant back to the book's price."""
    tenant = parameters.tenant_id(tenant_id, TenantNotFound)
    async with system.transaction() as tx:
        await pricing.drop_override(tx, tenant, kind, outcome)
    prices.forget()


def check_lines(lines: list[PriceLine]) -> None:
    """Every kind that can be submitted has a price for a page, and each price is told once."""
    named = [(line.kind, line.outcome) for line in lines]
    for index, name in enumerate(named):
        if name in named[:index]:
            raise problems.invalid(f"$.lines[{index}]", "This kind and outcome has a line already")
    for kind in KIND_OF.values():
        if (kind, "page") not in named:
            raise problems.invalid("$.lines", f"Expected a line for a page of kind {kind}")


ROUTER = Router(
    "/",
    route_handlers=[
        list_plans,
        put_plan,
        read_price_book,
        publish_price_book,
        set_own_price,
        drop_own_price,
    ],
    tags=["Administration"],
)
