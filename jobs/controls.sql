-- name: pause(tenant_id, job_id)
SELECT pause_job_v1(:tenant_id, :job_id);

-- name: resume(tenant_id, job_id)
SELECT resume_job_v1(:tenant_id, :job_id);

-- name: end_pause(tenant_id, job_id, token)
SELECT end_pause_v1(:tenant_id, :job_id, :token);

-- name: pause_for_budget(tenant_id, job_id, token, extensions)
SELECT pause_for_budget_v1(:tenant_id, :job_id, :token, :extensions);
