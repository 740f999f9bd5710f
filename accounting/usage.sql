-- name: groups(tenant_id, by, since, until, after, count)
-- First the total, each page once; then the groups. A job with several tags stands in the group of
-- each, one without any in the group ''. Pages are added up before tags are told apart.
WITH summed AS MATERIALIZED (
    SELECT CASE :by::text
               WHEN 'day' THEN ARRAY[(at AT TIME ZONE 'UTC')::date::text]
               WHEN 'kind' THEN ARRAY[kind]
               WHEN 'key' THEN ARRAY[key_id]
               WHEN 'host' THEN ARRAY[CASE WHEN split_part(url, '/', 3) LIKE '[%'
                   THEN split_part(split_part(url, '/', 3), ']', 1) || ']'
                   ELSE split_part(split_part(url, '/', 3), ':', 1) END]
               WHEN 'tag' THEN CASE tags WHEN '{}' THEN ARRAY[''] ELSE tags END
           END AS names,
           count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
           count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE state = 'skipped') AS skipped,
           sum(charged) AS charged, sum(refunded) AS refunded
    FROM usage_facts_v1(:tenant_id, :since, :until)
    GROUP BY 1
), named AS (
    SELECT n.name, sum(succeeded) AS succeeded, sum(failed) AS failed, sum(skipped) AS skipped,
           sum(charged) AS charged, sum(refunded) AS refunded
    FROM summed CROSS JOIN LATERAL (SELECT DISTINCT unnest(names) AS name) AS n
    WHERE :after::text IS NULL OR n.name COLLATE "C" > :after
    GROUP BY n.name ORDER BY n.name COLLATE "C" LIMIT :count
), told AS (
    SELECT NULL AS name, sum(succeeded) AS succeeded, sum(failed) AS failed,
           sum(skipped) AS skipped, sum(charged) AS charged, sum(refunded) AS refunded FROM summed
    UNION ALL SELECT * FROM named
)
SELECT name AS group, coalesce(succeeded, 0)::bigint AS succeeded,
       coalesce(failed, 0)::bigint AS failed, coalesce(skipped, 0)::bigint AS skipped,
       coalesce(charged, 0)::bigint AS credits_charged,
       coalesce(refunded, 0)::bigint AS credits_refunded
FROM told ORDER BY name COLLATE "C" NULLS FIRST;
