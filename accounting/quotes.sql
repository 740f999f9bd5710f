-- name: insert(tenant_id, quote_id, kind, request_hash, request, price_version, prices, ceiling, probe_state)
INSERT INTO quote (tenant_id, quote_id, kind, request_hash, request, price_version, prices,
                   ceiling, probe_state)
VALUES (:tenant_id, :quote_id, :kind, :request_hash, :request, :price_version, :prices, :ceiling,
        :probe_state)
RETURNING quote_id, kind, price_version, prices, ceiling, created_at, expires_at, probe_state,
          probe;

-- name: one(tenant_id, quote_id)
SELECT quote_id, kind, price_version, prices, ceiling, created_at, expires_at, probe_state, probe
FROM quote WHERE tenant_id = :tenant_id AND quote_id = :quote_id;

-- name: good_for(tenant_id, quote_id, request_hash)
SELECT price_version, prices, ceiling FROM quote
WHERE tenant_id = :tenant_id AND quote_id = :quote_id AND request_hash = :request_hash
  AND expires_at > now();

-- name: claim_probe(seconds)
-- Only a look that somebody may still wait for is taken.
UPDATE quote SET probe_state = 'taken'
FROM (
    SELECT tenant_id, quote_id FROM quote
    WHERE probe_state = 'wanted' AND created_at > now() - make_interval(secs => :seconds)
    ORDER BY created_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
) AS next
WHERE quote.tenant_id = next.tenant_id AND quote.quote_id = next.quote_id
RETURNING quote.tenant_id, quote.quote_id, quote.kind, quote.request;

-- name: answer_probe(tenant_id, quote_id, probe)
UPDATE quote SET probe_state = 'done', probe = :probe
WHERE tenant_id = :tenant_id AND quote_id = :quote_id AND probe_state = 'taken';
