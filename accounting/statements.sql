-- name: balance_at(tenant_id, instant)
-- What every entry before the instant adds up to, from the last closed period on.
WITH base AS (
    SELECT closing - closing_held AS available, closing_held AS held, ends_at FROM period_close
    WHERE tenant_id = :tenant_id AND ends_at <= :instant ORDER BY period DESC LIMIT 1
)
SELECT (coalesce((SELECT available FROM base), 0) + coalesce(sum(l.available), 0))::bigint
           AS available,
       (coalesce((SELECT held FROM base), 0) + coalesce(sum(l.held), 0))::bigint AS held
FROM statement_lines_v1(
    :tenant_id, coalesce((SELECT ends_at FROM base), '-infinity'), :instant) AS l;

-- name: totals_at(tenant_id, instant)
-- All accounts as of an instant, and what was charged in its month until then.
SELECT coalesce(sum(available), 0)::bigint AS available,
       coalesce(sum(held), 0)::bigint AS held,
       coalesce(sum(credits) FILTER (WHERE kind = 'charge'), 0)::bigint AS charged_lifetime,
       (SELECT coalesce(sum(amount), 0)::bigint FROM transfer
        WHERE tenant_id = :tenant_id AND kind = 'charge' AND recorded_at < :instant
          AND recorded_at >= date_trunc('month', :instant::timestamptz, 'UTC')) AS charged_period,
       coalesce(sum(credits) FILTER (WHERE kind = 'refund'), 0)::bigint AS refunded,
       coalesce(sum(credits) FILTER (WHERE kind = 'expire'), 0)::bigint AS expired,
       coalesce(sum(credits) FILTER (WHERE kind IN ('grant', 'adjust_in')), 0)::bigint AS granted,
       coalesce(sum(credits) FILTER (WHERE kind = 'adjust_out'), 0)::bigint AS adjusted_out
FROM statement_lines_v1(:tenant_id, '-infinity', :instant);

-- name: lines(tenant_id, since, until)
SELECT kind, prior_period, entries, credits, available, held
FROM statement_lines_v1(:tenant_id, :since, :until)
ORDER BY kind, prior_period NULLS FIRST;

-- name: closed(tenant_id, period)
SELECT opening - opening_held AS opening_available, opening_held,
       closing - closing_held AS closing_available, closing_held, totals, last_transfer_id,
       closed_at
FROM period_close WHERE tenant_id = :tenant_id AND period = :period;

-- name: held_by_job(tenant_id, instant, count)
-- What each hold bound just before the instant, the largest first. A hold's own times may be a
-- transaction older than those of its entries, hence the hour.
SELECT t.hold_id AS job_id,
       sum(CASE 'held' WHEN t.credit THEN t.amount ELSE -t.amount END)::bigint AS credits,
       sum(sum(CASE 'held' WHEN t.credit THEN t.amount ELSE -t.amount END)) OVER ()::bigint AS total
FROM hold h
JOIN transfer t ON t.tenant_id = h.tenant_id AND t.hold_id = h.hold_id
    AND 'held' IN (t.debit, t.credit) AND t.recorded_at < :instant
WHERE h.tenant_id = :tenant_id AND h.opened_at < :instant
  AND (h.closed_at IS NULL OR h.closed_at >= :instant::timestamptz - interval '1 hour')
GROUP BY t.hold_id
HAVING sum(CASE 'held' WHEN t.credit THEN t.amount ELSE -t.amount END) <> 0
ORDER BY 2 DESC, 1
LIMIT :count;

-- name: mark()
-- Now, and a transaction's id that is newer than that.
SELECT now() AS before, pg_current_xact_id()::text AS mark;

-- name: due(before, count)
-- Tenants with a month that has ended and is not closed.
SELECT a.tenant_id FROM account a
WHERE date_trunc('month', :before::timestamptz, 'UTC') > coalesce(
    (SELECT max(c.ends_at) FROM period_close c WHERE c.tenant_id = a.tenant_id),
    (SELECT date_trunc('month', t.recorded_at, 'UTC') FROM transfer t
     WHERE t.tenant_id = a.tenant_id ORDER BY t.transfer_id LIMIT 1))
LIMIT :count;

-- name: close(tenant_id, before, mark)
SELECT close_period_v1(:tenant_id, :before, :mark::text::xid8);
