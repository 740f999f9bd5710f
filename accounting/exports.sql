-- name: begin(tenant_id)
-- What the export will be of: the last seal, where unsealed entries may begin, and this instant.
SELECT now() AS exported_at, pg_current_snapshot()::text AS snapshot,
       (SELECT sealed_through FROM seal_position) AS sealed_through,
       (SELECT coalesce(max(seal_no), 0) FROM seal WHERE tenant_id = :tenant_id) AS last_seal;

-- name: sealed(tenant_id, seal_no, transfer_id, last_seal, count)
-- Entries seal by seal; the last entry of a seal brings the seal's own line.
SELECT e.seal_no, e.transfer_id, sealed_text_v1(t) AS entry,
       CASE WHEN s.seal_no IS NOT NULL THEN json_build_object(
           'type', 'seal', 'seal_no', s.seal_no, 'entries', s.entries,
           'entries_so_far', s.entries_so_far, 'first_entry', s.first_transfer,
           'last_entry', s.last_transfer, 'sealed_at',
           to_char(s.sealed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
           'prev_head', encode(s.prev_head, 'hex'), 'head', encode(s.head, 'hex'))::text
       END AS seal
FROM seal_entry e
JOIN transfer t ON t.tenant_id = e.tenant_id AND t.transfer_id = e.transfer_id
LEFT JOIN seal s ON s.tenant_id = e.tenant_id AND s.seal_no = e.seal_no
    AND s.last_transfer = e.transfer_id
WHERE e.tenant_id = :tenant_id AND (e.seal_no, e.transfer_id) > (:seal_no, :transfer_id)
  AND e.seal_no <= :last_seal
ORDER BY e.seal_no, e.transfer_id LIMIT :count;

-- name: unsealed(tenant_id, transfer_id, last_seal, snapshot, count)
-- Entries that no seal of the export holds, as of its instant, whatever has been committed since.
SELECT t.transfer_id, sealed_text_v1(t) AS entry FROM transfer t
WHERE t.tenant_id = :tenant_id AND t.transfer_id > :transfer_id
  AND pg_visible_in_snapshot(t.xid, :snapshot::text::pg_snapshot)
  AND NOT EXISTS (SELECT FROM seal_entry e WHERE e.tenant_id = t.tenant_id
                  AND e.transfer_id = t.transfer_id AND e.seal_no <= :last_seal)
ORDER BY t.transfer_id LIMIT :count;
