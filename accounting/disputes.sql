-- name: open(tenant_id, dispute_id, job_id, pages, reason, actor)
SELECT outcome, told FROM open_dispute_v1(
    :tenant_id, :dispute_id, :job_id, :pages::integer[], :reason, :actor);

-- name: decide(tenant_id, dispute_id, decision, reason, actor, correction_id, approval_above)
SELECT outcome, told FROM decide_dispute_v1(
    :tenant_id, :dispute_id, :decision, :reason, :actor, :correction_id, :approval_above);

-- name: list(tenant_id, job_id, state, after, count)
SELECT d.tenant_id, d.dispute_id, d.job_id, d.reason, d.opened_by, d.opened_at,
       coalesce(x.decision, 'open') AS state, p.pages, p.credits_charged, p.credits_refunded,
       CASE WHEN x.dispute_id IS NOT NULL THEN jsonb_build_object(
           'reason', x.reason, 'decided_by', x.decided_by, 'decided_at', x.decided_at,
           'correction_id', x.correction_id) END AS decision
FROM dispute d
LEFT JOIN dispute_decision x ON x.tenant_id = d.tenant_id AND x.dispute_id = d.dispute_id
CROSS JOIN LATERAL (
    SELECT array_agg(c.page_no ORDER BY c.page_no) AS pages,
           sum((c.evidence ->> 'credits')::bigint)::bigint AS credits_charged,
           coalesce(sum(r.amount), 0)::bigint AS credits_refunded
    FROM dispute_page c LEFT JOIN page_refund r
        ON r.tenant_id = c.tenant_id AND r.job_id = c.job_id AND r.page_no = c.page_no
    WHERE c.tenant_id = d.tenant_id AND c.dispute_id = d.dispute_id) AS p
WHERE (:tenant_id::uuid IS NULL OR d.tenant_id = :tenant_id)
  AND (:job_id::uuid IS NULL OR d.job_id = :job_id)
  AND (:state::text IS NULL OR coalesce(x.decision, 'open') = :state)
  AND (:after::uuid IS NULL OR d.dispute_id > :after)
ORDER BY d.dispute_id LIMIT :count;

-- name: one(tenant_id, job_id, dispute_id)
SELECT d.tenant_id, d.dispute_id, d.job_id, d.reason, d.opened_by, d.opened_at,
       coalesce(x.decision, 'open') AS state,
       CASE WHEN x.dispute_id IS NOT NULL THEN jsonb_build_object(
           'reason', x.reason, 'decided_by', x.decided_by, 'decided_at', x.decided_at,
           'correction_id', x.correction_id) END AS decision
FROM dispute d
LEFT JOIN dispute_decision x ON x.tenant_id = d.tenant_id AND x.dispute_id = d.dispute_id
WHERE d.tenant_id = :tenant_id AND (:job_id::uuid IS NULL OR d.job_id = :job_id)
  AND d.dispute_id = :dispute_id;

-- name: evidence(tenant_id, dispute_id)
SELECT c.page_no, c.evidence, coalesce(r.amount, 0) AS credits_refunded
FROM dispute_page c LEFT JOIN page_refund r
    ON r.tenant_id = c.tenant_id AND r.job_id = c.job_id AND r.page_no = c.page_no
WHERE c.tenant_id = :tenant_id AND c.dispute_id = :dispute_id ORDER BY c.page_no;
