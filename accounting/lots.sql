-- name: grant(tenant_id, lot_id, amount, source, op_key, expires_at, priority, meta)
SELECT outcome, granted_lot FROM grant_v1(
    :tenant_id, :lot_id, :amount, :source, :op_key, :expires_at, :priority, :meta);

-- name: lock_account(tenant_id)
SELECT 1 FROM account WHERE tenant_id = :tenant_id FOR NO KEY UPDATE;

-- name: expire_lots(tenant_id)
SELECT expire_lots_v1(:tenant_id);

-- name: tenants_with_expired_lots(count)
SELECT DISTINCT tenant_id FROM lot WHERE NOT exhausted AND expires_at <= now() LIMIT :count;
