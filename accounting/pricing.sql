-- name: current()
SELECT price_version, kind, outcome, credits FROM price
WHERE price_version = (SELECT max(price_version) FROM price)
ORDER BY kind, outcome;

-- name: publish(kinds, outcomes, credits)
INSERT INTO price (price_version, kind, outcome, credits)
SELECT (SELECT coalesce(max(price_version), 0) + 1 FROM price), line.*
FROM unnest(:kinds::text[], :outcomes::text[], :credits::bigint[]) AS line
RETURNING price_version;

-- name: lock()
SELECT pg_advisory_xact_lock(hashtext('pagetoll.price_book'));

-- name: overrides(tenant_id)
SELECT kind, outcome, credits FROM price_override WHERE tenant_id = :tenant_id
ORDER BY kind, outcome;

-- name: set_override(tenant_id, kind, outcome, credits, reason, actor)
INSERT INTO price_override (tenant_id, kind, outcome, credits, reason, actor)
SELECT tenant_id, :kind, :outcome, :credits, :reason, :actor FROM tenant
WHERE tenant_id = :tenant_id
ON CONFLICT (tenant_id, kind, outcome) DO UPDATE SET credits = excluded.credits,
    reason = excluded.reason, actor = excluded.actor, set_at = now()
RETURNING tenant_id;

-- name: drop_override(tenant_id, kind, outcome)
DELETE FROM price_override
WHERE tenant_id = :tenant_id AND kind = :kind AND outcome = :outcome RETURNING tenant_id;
