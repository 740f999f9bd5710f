-- What customers can quote: closed periods, and a numbered feed of entries that never changes.
CREATE TABLE period_close (
    tenant_id uuid NOT NULL REFERENCES account,
    period date NOT NULL CHECK (extract(day FROM period) = 1),
    ends_at timestamptz NOT NULL,
    -- available and held together, and how much of it was held
    opening bigint NOT NULL CHECK (opening >= 0),
    opening_held bigint NOT NULL CHECK (opening_held BETWEEN 0 AND opening),
    closing bigint NOT NULL CHECK (closing >= 0),
    closing_held bigint NOT NULL CHECK (closing_held BETWEEN 0 AND closing),
    totals jsonb NOT NULL,
    last_transfer_id bigint NOT NULL,
    closed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, period),
    CONSTRAINT a_period_is_a_month CHECK (
        ends_at = (period + interval '1 month') AT TIME ZONE 'UTC'),
    CONSTRAINT closed_after_its_end CHECK (closed_at >= ends_at)
);

-- The feed's order: numbers without gaps, given once, behind every transaction that still runs.
CREATE TABLE usage_event (
    tenant_id uuid NOT NULL REFERENCES account,
    seq bigint NOT NULL CHECK (seq > 0),
    transfer_id bigint NOT NULL,
    PRIMARY KEY (tenant_id, seq),
    UNIQUE (tenant_id, transfer_id),
    FOREIGN KEY (tenant_id, transfer_id) REFERENCES transfer
);
-- Every entry up to `numbered_through` has its number. Those up to `next_through` get theirs once
-- every transaction up to `next_xid` has ended, for then none of them can still appear.
CREATE TABLE feed_position (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    numbered_through bigint NOT NULL DEFAULT 0,
    next_through bigint NOT NULL DEFAULT 0 CHECK (next_through >= numbered_through),
    next_xid xid8 NOT NULL DEFAULT '0'
);
INSERT INTO feed_position DEFAULT VALUES;
-- Entries are stored about in the order of their ids: this finds the newest and costs a write nothing.
CREATE INDEX transfer_newest ON transfer USING brin (transfer_id)
    WITH (pages_per_range = 16, autosummarize = on);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['period_close', 'usage_event'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION refuse_change_v1()', name);
        EXECUTE format('CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_v1()', name);
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
GRANT SELECT, UPDATE ON feed_position TO pagetoll_system;
GRANT SELECT ON SEQUENCE transfer_transfer_id_seq TO pagetoll_system;
