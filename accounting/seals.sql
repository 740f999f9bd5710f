-- name: last_transfer()
-- The last id given to any entry, committed or not.
SELECT coalesce(pg_sequence_last_value('transfer_transfer_id_seq'::regclass), 0);

-- name: position()
-- `ripe`: every transaction that could still bring an entry up to next_through has ended. The next
-- mark is an id of our own: all that had taken theirs by now are below it, and every writer of
-- entries takes its id with its first lock, before it takes an entry's number.
SELECT sealed_through, next_through, next_xid < pg_snapshot_xmin(pg_current_snapshot()) AS ripe,
       pg_current_xact_id()::text AS next_xid
FROM seal_position;

-- name: move(sealed_through, next_through, new_sealed, new_next, new_xid)
-- Compares first: of two processes that seal at once, one moves the position.
UPDATE seal_position
SET sealed_through = :new_sealed, next_through = :new_next, next_xid = :new_xid::text::xid8
WHERE sealed_through = :sealed_through AND next_through = :next_through;

-- name: forget_other_servers_xid()
-- After a restore from a dump, transaction ids begin anew and the stored one would never be reached.
UPDATE seal_position SET next_xid = pg_current_xact_id()
WHERE next_xid > pg_current_xact_id();

-- name: tenants_to_seal(sealed_through, after, count)
SELECT a.tenant_id FROM account a CROSS JOIN LATERAL (
    SELECT 1 FROM transfer t
    WHERE t.tenant_id = a.tenant_id AND t.transfer_id > :sealed_through
      AND NOT EXISTS (SELECT FROM seal_entry e WHERE e.tenant_id = t.tenant_id
                      AND e.transfer_id = t.transfer_id)
    LIMIT 1) AS unsealed
WHERE :after::uuid IS NULL OR a.tenant_id > :after
ORDER BY a.tenant_id LIMIT :count;

-- name: seal(tenant_id, sealed_through, count)
SELECT seal_v1(:tenant_id, :sealed_through, :count);

-- name: backlog()
-- Entries without a seal, and the age of the oldest of them.
SELECT count(*) AS entries,
       coalesce(extract(epoch FROM now() - min(t.recorded_at)), 0)::double precision
           AS oldest_seconds
FROM seal_position p CROSS JOIN account a CROSS JOIN LATERAL (
    SELECT one.recorded_at FROM transfer one
    WHERE one.tenant_id = a.tenant_id AND one.transfer_id > p.sealed_through
      AND NOT EXISTS (SELECT FROM seal_entry e WHERE e.tenant_id = one.tenant_id
                      AND e.transfer_id = one.transfer_id)) AS t;

-- name: head(tenant_id)
SELECT coalesce(s.seal_no, 0) AS seal_no,
       encode(coalesce(s.head, seal_origin_v1(:tenant_id)), 'hex') AS head,
       coalesce(s.entries_so_far, 0) AS entries, s.sealed_at
FROM (SELECT 1) AS always LEFT JOIN (
    SELECT * FROM seal WHERE tenant_id = :tenant_id ORDER BY seal_no DESC LIMIT 1) AS s ON true;
