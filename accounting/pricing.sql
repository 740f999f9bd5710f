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
