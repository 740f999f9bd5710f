-- Seals: hash chains over each tenant's entries, made behind the transactions that still run.
-- docs/money.md tells the form; accounting/verification.py computes the same without a database.

-- An entry as it is hashed and exported: one line of JSON, the same for ever.
CREATE OR REPLACE FUNCTION sealed_text_v1(t transfer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT json_build_object(
        'type', 'entry', 'entry_id', t.transfer_id, 'tenant_id', t.tenant_id, 'kind', t.kind,
        'debit', t.debit, 'credit', t.credit, 'amount', t.amount, 'hold_id', t.hold_id,
        'lot_id', t.lot_id, 'op_key', t.op_key, 'recorded_at',
        to_char(t.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'meta', t.meta)::text
$$;

-- The head before the first seal; chains of two tenants have nothing in common.
CREATE OR REPLACE FUNCTION seal_origin_v1(p_tenant uuid) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT sha256(convert_to('pagetoll seal chain of ' || p_tenant, 'UTF8'))
$$;

-- SHA-256 over the head before, one line about the seal, and the entries in the order of their ids.
CREATE OR REPLACE FUNCTION seal_head_v1(s seal, p_entries text) RETURNS bytea
LANGUAGE sql STABLE AS $$
    SELECT sha256(s.prev_head || convert_to(concat_ws(' ', 'seal', s.seal_no, s.entries,
        s.entries_so_far, s.first_transfer, s.last_transfer,
        to_char(s.sealed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
        || E'\n' || coalesce(p_entries, ''), 'UTF8'))
$$;

-- Seals what is not sealed of one tenant, at most p_limit entries beyond p_after, into one seal; how
-- many these were. Only rows that every running transaction is younger than: a lower id that commits
-- later goes into a later seal, never into one that exists. A row whose xid lies in the future came
-- out of a dump of another server and is committed. Two callers at once take turns.
CREATE OR REPLACE FUNCTION seal_v1(p_tenant uuid, p_after bigint, p_limit integer)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    s seal;
    chosen bigint[];
    lines text;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    PERFORM pg_advisory_xact_lock(hashtextextended('pagetoll.seal.' || p_tenant, 0));
    SELECT array_agg((t).transfer_id ORDER BY (t).transfer_id),
           string_agg(sealed_text_v1(t) || E'\n', '' ORDER BY (t).transfer_id)
    INTO chosen, lines
    FROM (SELECT one AS t FROM transfer AS one
          WHERE tenant_id = p_tenant AND transfer_id > p_after
            AND (xid < pg_snapshot_xmin(pg_current_snapshot())
                 OR xid >= pg_snapshot_xmax(pg_current_snapshot()))
            AND NOT EXISTS (SELECT FROM seal_entry AS e WHERE e.tenant_id = p_tenant
                            AND e.transfer_id = one.transfer_id)
          ORDER BY transfer_id LIMIT p_limit) AS picked;
    IF chosen IS NULL THEN
        RETURN 0;
    END IF;
    SELECT * INTO s FROM seal WHERE tenant_id = p_tenant ORDER BY seal_no DESC LIMIT 1;
    s.prev_head := coalesce(s.head, seal_origin_v1(p_tenant));
    s.tenant_id := p_tenant;
    s.seal_no := coalesce(s.seal_no, 0) + 1;
    s.entries := cardinality(chosen);
    s.entries_so_far := coalesce(s.entries_so_far, 0) + s.entries;
    s.first_transfer := chosen[1];
    s.last_transfer := chosen[s.entries];
    s.sealed_at := clock_timestamp();
    s.head := seal_head_v1(s, lines);
    INSERT INTO seal SELECT s.*;
    INSERT INTO seal_entry (tenant_id, transfer_id, seal_no)
    SELECT p_tenant, id, s.seal_no FROM unnest(chosen) AS id;
    RETURN s.entries;
END
$$;
