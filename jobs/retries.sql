-- name: job(tenant_id, job_id)
SELECT kind, request, finished_at IS NOT NULL AS is_final FROM job
WHERE tenant_id = :tenant_id AND job_id = :job_id;

-- name: failed(tenant_id, job_id, reasons)
SELECT url, url_key FROM page
WHERE tenant_id = :tenant_id AND job_id = :job_id AND state = 'failed' AND reason = ANY(:reasons)
ORDER BY page_no;
