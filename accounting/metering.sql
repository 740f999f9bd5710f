-- name: reserve(tenant_id, job, credits, ceiling, seeds)
SELECT outcome, found_job, available_credits, refusal
FROM reserve_v1(:tenant_id, :job, :credits, :ceiling, :seeds);

-- name: top_up(tenant_id, job_id, token, credits)
SELECT top_up_v1(:tenant_id, :job_id, :token, :credits);

-- name: settle_pages(tenant_id, job_id, token, pages, found, facts)
SELECT settle_pages_v1(:tenant_id, :job_id, :token, :pages, :found, :facts);

-- name: finish(tenant_id, job_id, token, reason, error)
SELECT finish_job_v1(:tenant_id, :job_id, :token, :reason, :error);

-- name: cancel(tenant_id, job_id)
SELECT cancel_job_v1(:tenant_id, :job_id);

-- name: sweep_overdue(count)
SELECT tenant, job, reason, fault FROM sweep_overdue_v1(:count);

-- name: settle_orphans(count)
SELECT tenant, job, fault FROM settle_orphans_v1(:count);
