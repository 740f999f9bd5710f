-- name: insert(tenant_id, name, plan_id)
WITH made AS (
    INSERT INTO tenant (tenant_id, name, plan_id)
    SELECT :tenant_id, :name, plan_id FROM plan WHERE plan_id = :plan_id
    RETURNING tenant_id
)
SELECT tenant_id FROM made;

-- name: open_account(tenant_id)
INSERT INTO account (tenant_id) VALUES (:tenant_id);

-- name: one(tenant_id)
SELECT tenant_id, name, plan_id, status, created_at FROM tenant WHERE tenant_id = :tenant_id;

-- name: list(after, count)
SELECT tenant_id, name, plan_id, status, created_at FROM tenant
WHERE :after::uuid IS NULL OR tenant_id > :after
ORDER BY tenant_id LIMIT :count;

-- name: change(tenant_id, plan_id, status)
UPDATE tenant SET plan_id = coalesce(:plan_id, plan_id), status = coalesce(:status, status)
WHERE tenant_id = :tenant_id
RETURNING tenant_id, name, plan_id, status, created_at;

-- name: plans()
SELECT plan_id, submits_per_minute, status_per_minute, reads_per_minute, running_jobs, max_pages,
       max_timeout_seconds, host_interval_seconds, host_concurrency, retention_hours,
       may_ignore_robots, unpaced_allowed_networks, weight, pages_per_second
FROM plan ORDER BY plan_id;

-- name: plan_of(tenant_id)
SELECT p.plan_id, p.submits_per_minute, p.status_per_minute, p.reads_per_minute, p.running_jobs,
       p.max_pages, p.max_timeout_seconds, p.host_interval_seconds, p.host_concurrency,
       p.retention_hours, p.may_ignore_robots, p.unpaced_allowed_networks, p.weight, p.pages_per_second
FROM tenant t JOIN plan p USING (plan_id) WHERE t.tenant_id = :tenant_id;

-- name: put_plan(plan)
-- By name, so that a column which newer code adds has its default.
INSERT INTO plan (plan_id, submits_per_minute, status_per_minute, reads_per_minute, running_jobs,
                  max_pages, max_timeout_seconds, host_interval_seconds, host_concurrency,
                  retention_hours, may_ignore_robots, unpaced_allowed_networks, weight,
                  pages_per_second)
SELECT plan_id, submits_per_minute, status_per_minute, reads_per_minute, running_jobs,
       max_pages, max_timeout_seconds, host_interval_seconds, host_concurrency,
       retention_hours, may_ignore_robots, unpaced_allowed_networks, weight,
       pages_per_second
FROM jsonb_populate_record(NULL::plan, :plan)
ON CONFLICT (plan_id) DO UPDATE SET
    submits_per_minute = excluded.submits_per_minute,
    status_per_minute = excluded.status_per_minute,
    reads_per_minute = excluded.reads_per_minute,
    running_jobs = excluded.running_jobs,
    max_pages = excluded.max_pages,
    max_timeout_seconds = excluded.max_timeout_seconds,
    host_interval_seconds = excluded.host_interval_seconds,
    host_concurrency = excluded.host_concurrency,
    retention_hours = excluded.retention_hours,
    may_ignore_robots = excluded.may_ignore_robots,
    unpaced_allowed_networks = excluded.unpaced_allowed_networks,
    weight = excluded.weight,
    pages_per_second = excluded.pages_per_second;

-- name: named(name)
SELECT tenant_id, name, plan_id, status, created_at FROM tenant WHERE name = :name
ORDER BY created_at, tenant_id LIMIT 1;
