-- Proof: hash-chained seals over the entries, the runs of the reconciliation, frozen tenants.
CREATE TABLE seal (
    tenant_id uuid NOT NULL REFERENCES account,
    seal_no bigint NOT NULL CHECK (seal_no > 0),
    entries integer NOT NULL CHECK (entries > 0),
    entries_so_far bigint NOT NULL CHECK (entries_so_far >= entries),
    first_transfer bigint NOT NULL,
    last_transfer bigint NOT NULL CHECK (last_transfer >= first_transfer),
    prev_head bytea NOT NULL CHECK (length(prev_head) = 32),
    head bytea NOT NULL CHECK (length(head) = 32),
    sealed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, seal_no)
);

-- Which entry is in which seal: ids are not in the order of commits, so a range would not tell.
CREATE TABLE seal_entry (
    tenant_id uuid NOT NULL,
    transfer_id bigint NOT NULL,
    seal_no bigint NOT NULL,
    PRIMARY KEY (tenant_id, transfer_id),
    FOREIGN KEY (tenant_id, transfer_id) REFERENCES transfer,
    FOREIGN KEY (tenant_id, seal_no) REFERENCES seal
);
CREATE INDEX seal_entry_by_seal ON seal_entry (tenant_id, seal_no, transfer_id);

-- Where the search for entries without a seal begins. Every entry up to `sealed_through` is sealed;
-- those up to `next_through` will be, once no transaction older than `next_xid` is left.
CREATE TABLE seal_position (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    sealed_through bigint NOT NULL DEFAULT 0,
    next_through bigint NOT NULL DEFAULT 0 CHECK (next_through >= sealed_through),
    next_xid xid8 NOT NULL DEFAULT '0'
);
INSERT INTO seal_position DEFAULT VALUES;

-- What a run proved. Only broken invariants are kept in `verdicts`: most runs have none.
CREATE TABLE reconciliation_run (
    run_id uuid PRIMARY KEY,
    scope text NOT NULL CHECK (scope IN ('full', 'recent')),
    asked_by text NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_transfer bigint NOT NULL,
    invariants integer NOT NULL,
    tenants integer,
    holds integer,
    verdicts jsonb NOT NULL
);
CREATE INDEX reconciliation_run_newest ON reconciliation_run (started_at DESC);
-- Only the end of a hold touches this index, so that charges stay HOT updates.
CREATE INDEX hold_closed ON hold (closed_at) WHERE state = 'closed';

-- A tenant whose books are broken reserves nothing more until an operator has looked.
ALTER TABLE tenant ADD COLUMN frozen_at timestamptz, ADD COLUMN frozen_by text,
    ADD CONSTRAINT frozen_has_its_cause CHECK ((frozen_at IS NULL) = (frozen_by IS NULL));
CREATE INDEX tenant_frozen ON tenant (tenant_id) WHERE frozen_at IS NOT NULL;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['seal', 'seal_entry', 'reconciliation_run'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION refuse_change_v1()', name);
        EXECUTE format('CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_v1()', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['seal', 'seal_entry'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I TO pagetoll_app USING '
                       '(tenant_id = nullif(current_setting(''pagetoll.tenant'', true), '''')::uuid)',
                       name);
        EXECUTE format('CREATE POLICY every_tenant ON %I TO pagetoll_system USING (true)', name);
        EXECUTE format('GRANT SELECT, INSERT ON %I TO pagetoll_system', name);
        EXECUTE format('GRANT SELECT ON %I TO pagetoll_app', name);
    END LOOP;
END
$$;
GRANT SELECT, INSERT ON reconciliation_run TO pagetoll_system;
GRANT SELECT, UPDATE ON seal_position TO pagetoll_system;
GRANT SELECT ON seal_position TO pagetoll_app;
GRANT SELECT ON SEQUENCE transfer_transfer_id_seq TO pagetoll_system;
