-- name: balance(tenant_id)
-- One statement, one instant: what CONTRACT calls available, held, charged, refunded, expired.
SELECT a.available,
       (SELECT coalesce(sum(reserved - charged - released), 0)::bigint FROM hold
        WHERE tenant_id = a.tenant_id AND state = 'open') AS held,
       (SELECT coalesce(sum(charged), 0)::bigint FROM hold WHERE tenant_id = a.tenant_id)
           AS charged_lifetime,
       (SELECT coalesce(sum(amount), 0)::bigint FROM transfer
        WHERE tenant_id = a.tenant_id AND kind = 'charge'
          AND recorded_at >= date_trunc('month', now(), 'UTC')) AS charged_period,
       (SELECT coalesce(sum(amount), 0)::bigint FROM transfer
        WHERE tenant_id = a.tenant_id AND kind = 'refund') AS refunded,
       (SELECT coalesce(sum(amount), 0)::bigint FROM transfer
        WHERE tenant_id = a.tenant_id AND kind = 'expire') AS expired,
       (SELECT coalesce(sum(t.amount), 0)::bigint FROM transfer t
        WHERE t.tenant_id = a.tenant_id AND t.kind = 'grant') AS granted,
       (SELECT coalesce(sum(amount), 0)::bigint FROM transfer
        WHERE tenant_id = a.tenant_id AND kind = 'adjust_out') AS adjusted_out,
       (SELECT coalesce(jsonb_agg(to_jsonb(l) ORDER BY l.expires_at NULLS LAST, l.priority, l.lot_id),
                        '[]')
        FROM (SELECT lot_id, source, amount, remaining, expires_at, priority, created_at FROM lot
              WHERE tenant_id = a.tenant_id AND NOT exhausted
              ORDER BY expires_at NULLS LAST, priority, lot_id LIMIT 1000) AS l) AS lots
FROM account a WHERE a.tenant_id = :tenant_id;

-- name: entries(tenant_id, after, hold_id, kind, since, until, count)
SELECT transfer_id, kind, debit, credit, amount, hold_id, lot_id, op_key, recorded_at, meta
FROM transfer
WHERE tenant_id = :tenant_id AND transfer_id > :after
  AND (:hold_id::uuid IS NULL OR hold_id = :hold_id)
  AND (:kind::text IS NULL OR kind = :kind)
  AND (:since::timestamptz IS NULL OR recorded_at >= :since)
  AND (:until::timestamptz IS NULL OR recorded_at < :until)
ORDER BY transfer_id
LIMIT :count;
