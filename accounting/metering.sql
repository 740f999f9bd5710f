-- name: top_up(tenant_id, job_id, token, credits)
SELECT top_up_v1(:tenant_id, :job_id, :token, :credits);

-- name: settle_pages(tenant_id, job_id, token, pages, found, facts, take, by_level)
SELECT answer, page_no, url, depth, attempts, source
FROM settle_pages_v2(
    :tenant_id, :job_id, :token, :pages, :found, :facts, :take, :by_level);

-- name: finish(tenant_id, job_id, token, reason, error)
SELECT finish_job_v1(:tenant_id, :job_id, :token, :reason, :error);

-- name: finish_run(tenant_id, job_id, token, reason, error, extensions)
SELECT finish_run_v1(:tenant_id, :job_id, :token, :reason, :error, :extensions);

-- name: extend(tenant_id, job_id, max_pages, timeout_seconds, max_credits, tranche_pages)
SELECT outcome, moved, available_credits, refusal
FROM extend_job_v1(:tenant_id, :job_id, :max_pages, :timeout_seconds, :max_credits, :tranche_pages);

-- name: resume_funded(count, tranche_pages)
SELECT tenant, job, fault FROM resume_funded_v1(:count, :tranche_pages);

-- name: cancel(tenant_id, job_id)
SELECT cancel_job_v1(:tenant_id, :job_id);

-- name: sweep_overdue(count)
SELECT tenant, job, reason, fault FROM sweep_overdue_v1(:count);

-- name: settle_orphans(count)
SELECT tenant, job, fault FROM settle_orphans_v1(:count);
