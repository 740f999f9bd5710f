-- name: one(tenant_id, job_id)
SELECT s.*, q.queue_position, q.starts_in_seconds
FROM read_status_v1(:tenant_id, :job_id) AS s
LEFT JOIN LATERAL queue_place_v1(s.tenant_id, s.job_id) AS q ON s.state = 'queued';

-- name: newest(tenant_id, kinds, states, created_after, created_before, tag, before_time, before_id, count)
SELECT * FROM job_status
WHERE tenant_id = :tenant_id
  AND (:kinds::text[] IS NULL OR kind = ANY(:kinds))
  AND (:states::text[] IS NULL OR state = ANY(:states))
  AND (:created_after::timestamptz IS NULL OR created_at > :created_after)
  AND (:created_before::timestamptz IS NULL OR created_at < :created_before)
  AND (:tag::text IS NULL OR :tag = ANY(tags))
  AND (:before_time::timestamptz IS NULL
       OR (created_at, job_id) < (:before_time, :before_id::uuid))
ORDER BY created_at DESC, job_id DESC
LIMIT :count;
