-- name: claim_job(owner, lease)
SELECT tenant_id, job_id, kind, key_id, request, prices, max_pages, lease_token, extensions,
       extract(epoch FROM deadline_at - clock_timestamp())::double precision AS seconds_left,
       queued + in_flight + succeeded + failed + skipped AS admitted,
       extract(epoch FROM started_at - created_at)::double precision AS waited_seconds
FROM claim_job_v1(:owner, :lease);

-- name: renew(tenant_id, job_id, token, lease)
SELECT job_state, seconds_left FROM renew_lease_v1(:tenant_id, :job_id, :token, :lease);

-- name: hand_back(tenant_id, job_id, token)
SELECT hand_back_v1(:tenant_id, :job_id, :token);

-- name: free_leases(count)
SELECT tenant, job, owner FROM free_leases_v1(:count);

-- name: claim_pages(tenant_id, job_id, token, count, by_level)
SELECT page_no, url, depth, attempts, source
FROM claim_pages_v1(:tenant_id, :job_id, :token, :count, :by_level);

-- name: known_keys(tenant_id, job_id)
SELECT url_key FROM page WHERE tenant_id = :tenant_id AND job_id = :job_id
UNION ALL
SELECT url_key FROM excluded_url WHERE tenant_id = :tenant_id AND job_id = :job_id;

-- name: known_content(tenant_id, job_id)
SELECT content_hash FROM page
WHERE tenant_id = :tenant_id AND job_id = :job_id AND state = 'succeeded'
  AND content_hash IS NOT NULL;

-- name: was_left_out(tenant_id, job_id, key)
SELECT EXISTS (SELECT FROM excluded_url WHERE tenant_id = :tenant_id AND job_id = :job_id
               AND url_key = :key AND reason = 'limit_reached');

-- name: standing(tenant_id, job_id)
SELECT j.state, j.queued, j.in_flight, j.succeeded, j.page_limit_met, j.round_limit_met,
       h.reserved - h.charged - h.released AS outstanding,
       h.reserved < h.ceiling AS may_grow, j.extensions, p.reason AS first_reason,
       p.detail AS first_detail, p.url AS first_url, p.http_status AS first_status
FROM job j
JOIN hold h ON h.tenant_id = j.tenant_id AND h.hold_id = j.job_id
LEFT JOIN page p ON p.tenant_id = j.tenant_id AND p.job_id = j.job_id AND p.page_no = 0
WHERE j.tenant_id = :tenant_id AND j.job_id = :job_id;
