-- name: insert(tenant_id, key_id, name, secret_hash, scopes)
INSERT INTO api_key (tenant_id, key_id, name, secret_hash, scopes)
SELECT tenant_id, :key_id, :name, :secret_hash, :scopes::text[] FROM tenant
WHERE tenant_id = :tenant_id
RETURNING key_id, name, scopes, created_at, revoked_at;

-- name: list(tenant_id)
SELECT key_id, name, scopes, created_at, revoked_at FROM api_key
WHERE tenant_id = :tenant_id ORDER BY created_at, key_id LIMIT 1000;

-- name: revoke(tenant_id, key_id)
UPDATE api_key SET revoked_at = coalesce(revoked_at, now())
WHERE tenant_id = :tenant_id AND key_id = :key_id
RETURNING key_id, name, scopes, created_at, revoked_at;

-- name: find(key_id)
SELECT k.tenant_id, k.key_id, k.secret_hash, k.scopes, t.status,
       to_jsonb(p) - 'created_at' AS plan
FROM api_key k JOIN tenant t USING (tenant_id) JOIN plan p USING (plan_id)
WHERE k.key_id = :key_id AND k.revoked_at IS NULL;
