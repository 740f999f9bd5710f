-- name: put(tenant_id, budget_id, node, subject, period, cap)
SELECT budget_id FROM put_budget_v1(:tenant_id, :budget_id, :node, :subject, :period, :cap);

-- name: list(tenant_id)
SELECT b.budget_id, b.node, b.subject, b.period, b.cap, b.created_at,
       coalesce(used.charged, 0)::bigint AS used,
       (coalesce(u.committed, 0) - coalesce(used.charged, 0))::bigint AS held,
       period_end_v1(b.period, period_start_v1(b.period, now())) AS resets_at
FROM budget b
LEFT JOIN budget_use u ON u.tenant_id = b.tenant_id AND u.budget_id = b.budget_id
    AND u.period_start = period_start_v1(b.period, now())
LEFT JOIN LATERAL (
    SELECT sum(h.charged) AS charged FROM hold_budget l JOIN hold h USING (tenant_id, hold_id)
    WHERE l.tenant_id = u.tenant_id AND l.budget_id = u.budget_id
      AND l.period_start = u.period_start) AS used ON true
WHERE b.tenant_id = :tenant_id
ORDER BY b.node, b.subject, b.period;

-- name: lock_account(tenant_id)
SELECT 1 FROM account WHERE tenant_id = :tenant_id FOR NO KEY UPDATE;

-- name: remove(tenant_id, budget_id)
DELETE FROM budget WHERE tenant_id = :tenant_id AND budget_id = :budget_id RETURNING budget_id;

-- name: alert_below(tenant_id, credits)
UPDATE account SET low_at = :credits, told_low = false WHERE tenant_id = :tenant_id
RETURNING tenant_id;

-- name: tell(tenant_id)
SELECT tell_low_credits_v1(:tenant_id);

-- name: notices(tenant_id, after, count)
SELECT notice_id, kind, detail, created_at FROM notice
WHERE tenant_id = :tenant_id AND notice_id > :after
ORDER BY notice_id LIMIT :count;
