-- name: number(count)
SELECT number_entries_v1(:count);

-- name: events(tenant_id, after, count)
SELECT e.seq, t.transfer_id AS entry_id, t.kind, t.debit, t.credit, t.amount,
       t.hold_id AS job_id, t.lot_id, t.op_key, t.recorded_at, t.meta
FROM usage_event e JOIN transfer t USING (tenant_id, transfer_id)
WHERE e.tenant_id = :tenant_id AND e.seq > :after
ORDER BY e.seq LIMIT :count;
