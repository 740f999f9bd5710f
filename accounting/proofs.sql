-- name: is_alone()
-- One ledger process proves at a time; the lock goes with the transaction.
SELECT pg_try_advisory_xact_lock(hashtext('pagetoll.ledger.reconcile'));

-- name: is_full_due(hour)
-- Whether no full run began since the last time it was this hour (UTC).
SELECT NOT EXISTS (
    SELECT FROM reconciliation_run WHERE scope = 'full' AND started_at >= date_trunc(
        'day', now() - make_interval(hours => :hour::integer), 'UTC')
        + make_interval(hours => :hour::integer));

-- name: run_before(seconds)
-- Where a recent run begins: at a run old enough that what it could not see yet has ended.
SELECT started_at, last_transfer FROM reconciliation_run
WHERE started_at <= now() - make_interval(secs => :seconds) ORDER BY started_at DESC LIMIT 1;

-- name: moved(last_transfer, since)
-- Tenants with new entries or open holds; holds that are open, were closed lately or have new
-- entries; and everything of frozen tenants, until an operator has unfrozen them.
SELECT tenant_id, hold_id FROM hold WHERE state = 'open'
UNION SELECT tenant_id, hold_id FROM hold
WHERE state = 'closed' AND (:since::timestamptz IS NULL OR closed_at >= :since)
UNION SELECT a.tenant_id, t.hold_id FROM account a CROSS JOIN LATERAL (
    SELECT hold_id FROM transfer
    WHERE tenant_id = a.tenant_id AND transfer_id > :last_transfer) AS t
UNION SELECT t.tenant_id, h.hold_id FROM tenant t LEFT JOIN hold h USING (tenant_id)
WHERE t.frozen_at IS NOT NULL;

-- name: now()
SELECT now();

-- name: record(run)
INSERT INTO reconciliation_run (run_id, scope, asked_by, started_at, last_transfer, invariants,
                                tenants, holds, verdicts)
SELECT run_id, scope, asked_by, started_at, last_transfer, invariants, tenants, holds, verdicts
FROM jsonb_populate_record(NULL::reconciliation_run, :run)
RETURNING finished_at;

-- name: runs(after, count)
SELECT run_id, scope, asked_by, started_at, finished_at, invariants, tenants, holds, verdicts
FROM reconciliation_run WHERE :after::uuid IS NULL OR run_id < :after
ORDER BY run_id DESC LIMIT :count;

-- name: freeze(tenants, cause)
UPDATE tenant SET frozen_at = now(), frozen_by = :cause
WHERE tenant_id = ANY (:tenants::uuid[]) AND frozen_at IS NULL RETURNING tenant_id;

-- name: unfreeze(tenant_id)
UPDATE tenant SET frozen_at = NULL, frozen_by = NULL
WHERE tenant_id = :tenant_id AND frozen_at IS NOT NULL RETURNING tenant_id;

-- name: frozen()
SELECT tenant_id, frozen_at, frozen_by FROM tenant WHERE frozen_at IS NOT NULL ORDER BY frozen_at;
