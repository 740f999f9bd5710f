-- name: head(tenant_id, job_id)
-- The job, its hold, and what its pages come to.
SELECT j.job_id, j.kind, j.state, j.key_id, j.tags, j.price_version, j.prices, j.max_pages,
       j.created_at, j.finished_at, j.finished_at IS NOT NULL AS is_final,
       h.reserved, h.charged, h.released, h.state AS hold_state, h.opened_at, h.closed_at,
       p.pages, p.charged_pages, p.page_credits
FROM job j
JOIN hold h ON h.tenant_id = j.tenant_id AND h.hold_id = j.job_id
CROSS JOIN LATERAL (
    SELECT count(*) AS pages, count(transfer_id) AS charged_pages,
           coalesce(sum(credits), 0)::bigint AS page_credits
    FROM page WHERE tenant_id = j.tenant_id AND job_id = j.job_id) AS p
WHERE j.tenant_id = :tenant_id AND j.job_id = :job_id;

-- name: movements(tenant_id, job_id)
SELECT kind, count(*) AS entries, sum(amount)::bigint AS credits
FROM transfer WHERE tenant_id = :tenant_id AND hold_id = :job_id
GROUP BY kind ORDER BY kind;

-- name: pages(tenant_id, job_id, after, count)
SELECT page_no AS index, url, state AS status, reason, outcome, credits,
       transfer_id AS entry_id
FROM page WHERE tenant_id = :tenant_id AND job_id = :job_id AND page_no > :after
ORDER BY page_no LIMIT :count;

-- name: refunds(tenant_id, job_id, first, last)
SELECT page_no AS index, amount AS credits, transfer_id AS entry_id, reason,
       created_at AS refunded_at
FROM page_refund
WHERE tenant_id = :tenant_id AND job_id = :job_id AND page_no BETWEEN :first AND :last
ORDER BY page_no;
