-- name: groups(tenant_id, by, since, until, after, count)
-- A job with several tags stands in the group of each; one without any in the group ''.
SELECT g.name AS group, count(*) FILTER (WHERE f.state = 'succeeded') AS succeeded,
       count(*) FILTER (WHERE f.state = 'failed') AS failed,
       count(*) FILTER (WHERE f.state = 'skipped') AS skipped,
       sum(f.charged)::bigint AS credits_charged, sum(f.refunded)::bigint AS credits_refunded
FROM usage_facts_v1(:tenant_id, :since, :until) AS f
CROSS JOIN LATERAL (
    SELECT DISTINCT unnest(CASE :by::text
        WHEN 'day' THEN ARRAY[to_char(f.at AT TIME ZONE 'UTC', 'YYYY-MM-DD')]
        WHEN 'kind' THEN ARRAY[f.kind]
        WHEN 'key' THEN ARRAY[f.key_id]
        WHEN 'host' THEN ARRAY[coalesce(
            substring(f.url FROM '^[a-z]+://(\[[^\]]*\]|[^/:?#]*)'), '')]
        WHEN 'tag' THEN CASE f.tags WHEN '{}' THEN ARRAY[''] ELSE f.tags END
    END) AS name) AS g
WHERE :after::text IS NULL OR g.name COLLATE "C" > :after
GROUP BY g.name
ORDER BY g.name COLLATE "C"
LIMIT :count;

-- name: total(tenant_id, since, until)
SELECT count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
       count(*) FILTER (WHERE state = 'failed') AS failed,
       count(*) FILTER (WHERE state = 'skipped') AS skipped,
       coalesce(sum(charged), 0)::bigint AS credits_charged,
       coalesce(sum(refunded), 0)::bigint AS credits_refunded
FROM usage_facts_v1(:tenant_id, :since, :until);
