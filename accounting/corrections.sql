-- name: request(tenant_id, wanted, approval_above)
SELECT outcome, found_correction, told FROM request_correction_v1(:tenant_id, :wanted, :approval_above);

-- name: decide(tenant_id, correction_id, actor, refusal)
SELECT outcome, told FROM decide_correction_v1(:tenant_id, :correction_id, :actor, :refusal);

-- name: one(tenant_id, correction_id)
SELECT tenant_id, correction_id, kind, amount, reason, state, needs_approval, requested_by,
       requested_at, approved_by, refused_by, refusal, decided_at, job_id, page_nos AS pages,
       page_credits, op_key, dispute_id, transfer_id AS entry_id
FROM correction WHERE tenant_id = :tenant_id AND correction_id = :correction_id;

-- name: list(tenant_id, state, after, count)
SELECT tenant_id, correction_id, kind, amount, reason, state, needs_approval, requested_by,
       requested_at, approved_by, refused_by, refusal, decided_at, job_id, page_nos AS pages,
       page_credits, op_key, dispute_id, transfer_id AS entry_id
FROM correction
WHERE (:tenant_id::uuid IS NULL OR tenant_id = :tenant_id)
  AND (:state::text IS NULL OR state = :state)
  AND (:after::uuid IS NULL OR correction_id > :after)
ORDER BY correction_id LIMIT :count;
