-- name: pending()
-- Final jobs whose money is not settled: how many, and the oldest's age.
SELECT count(*) AS jobs,
       coalesce(extract(epoch FROM now() - min(j.finished_at)), 0)::double precision
           AS oldest_seconds
FROM hold h JOIN job j ON j.tenant_id = h.tenant_id AND j.job_id = h.hold_id
WHERE h.state = 'open' AND j.finished_at IS NOT NULL;

-- name: totals()
SELECT kind, sum(amount)::bigint AS credits FROM transfer GROUP BY kind;
