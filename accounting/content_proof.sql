-- name: segments(tenant_id, job_id)
SELECT DISTINCT segment FROM page
WHERE tenant_id = :tenant_id AND job_id = :job_id AND segment IS NOT NULL;

-- name: kept_jobs(tenant_id, expires_at, job_id, count)
-- Finished jobs whose content must still be there, after the one that is named.
SELECT tenant_id, job_id, expires_at FROM job
WHERE expires_at > now() AND content_deleted_at IS NULL
  AND (:tenant_id::uuid IS NULL
       OR (tenant_id, expires_at, job_id) > (:tenant_id, :expires_at::timestamptz, :job_id::uuid))
ORDER BY tenant_id, expires_at, job_id LIMIT :count;
