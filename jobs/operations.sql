-- name: newest(tenant_id, state, completion_reason, before_time, before_id, count)
SELECT tenant_id, job_id, kind, state, completion_reason, error, priority, created_at, started_at,
       finished_at, deadline_at, lease_owner, lease_until, deaths, admitted, queued, in_flight
FROM job
WHERE (:tenant_id::uuid IS NULL OR tenant_id = :tenant_id)
  AND (:state::text IS NULL OR state = :state)
  AND (:completion_reason::text IS NULL OR completion_reason = :completion_reason)
  AND (:before_time::timestamptz IS NULL
       OR (created_at, job_id) < (:before_time, :before_id::uuid))
ORDER BY created_at DESC, job_id DESC
LIMIT :count;
