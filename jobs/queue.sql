-- name: unrung(seconds, count)
-- Jobs that wait and that nobody has been told of for a while; whoever takes them rings again.
UPDATE job SET rung_at = now()
FROM (
    SELECT tenant_id, job_id FROM job
    WHERE (state = 'queued' OR (state = 'running' AND lease_owner IS NULL))
      AND coalesce(rung_at, created_at) < now() - make_interval(secs => :seconds)
    ORDER BY created_at LIMIT :count FOR NO KEY UPDATE SKIP LOCKED
) AS waiting
WHERE job.tenant_id = waiting.tenant_id AND job.job_id = waiting.job_id
RETURNING job.job_id;

-- name: waiting()
SELECT count(*) FILTER (WHERE state = 'queued') AS queued,
       count(*) FILTER (WHERE state IN ('running', 'pausing', 'cancelling')) AS running,
       coalesce(extract(epoch FROM now() - (min(queue_limit_at) FILTER (WHERE state = 'queued')
                                             - interval '30 min')), 0)
           ::double precision AS oldest_seconds
FROM job WHERE state NOT IN ('succeeded', 'failed', 'cancelled');
