-- name: due(count)
-- Content goes when its time has come and its money is settled; the bill stays.
SELECT j.tenant_id, j.job_id FROM job j
JOIN hold h ON h.tenant_id = j.tenant_id AND h.hold_id = j.job_id AND h.state = 'closed'
WHERE j.expires_at <= now() AND j.content_deleted_at IS NULL
ORDER BY j.expires_at LIMIT :count;

-- name: clear_pages(tenant_id, job_id)
UPDATE page SET segment = NULL, segment_offset = NULL, segment_length = NULL
WHERE tenant_id = :tenant_id AND job_id = :job_id AND segment IS NOT NULL;

-- name: mark_deleted(tenant_id, job_id)
UPDATE job SET content_deleted_at = now()
WHERE tenant_id = :tenant_id AND job_id = :job_id AND content_deleted_at IS NULL;

-- name: backlog()
SELECT count(*) FROM job WHERE expires_at <= now() AND content_deleted_at IS NULL;
