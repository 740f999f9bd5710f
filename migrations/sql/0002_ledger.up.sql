-- The ledger: prices, balances, lots, holds and the append-only transfers between accounts.
CREATE TABLE price (
    price_version integer NOT NULL CHECK (price_version > 0),
    kind text NOT NULL,
    outcome text NOT NULL,
    credits bigint NOT NULL CHECK (credits BETWEEN 0 AND 1000000),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (price_version, kind, outcome)
);
INSERT INTO price (price_version, kind, outcome, credits) VALUES (1, 'crawl', 'page', 1);

-- The one materialised balance; HOT updates need the free space.
CREATE TABLE account (
    tenant_id uuid PRIMARY KEY REFERENCES tenant,
    available bigint NOT NULL DEFAULT 0 CHECK (available >= 0),
    version bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE lot (
    tenant_id uuid NOT NULL REFERENCES account,
    lot_id uuid NOT NULL,
    source text NOT NULL CHECK (source IN ('grant', 'purchase', 'plan', 'refund', 'adjust')),
    amount bigint NOT NULL CHECK (amount > 0),
    remaining bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
    -- an index predicate on `remaining` would switch HOT updates off
    exhausted boolean NOT NULL DEFAULT false CHECK (exhausted = (remaining = 0)),
    priority smallint NOT NULL DEFAULT 50,
    expires_at timestamptz,
    op_key text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, lot_id),
    UNIQUE (tenant_id, op_key)
) WITH (fillfactor = 50);
CREATE INDEX lot_to_spend ON lot (tenant_id, expires_at, priority, lot_id) WHERE NOT exhausted;

-- One row is one debit and one credit, so that no transfer can be unbalanced.
CREATE TABLE transfer (
    tenant_id uuid NOT NULL REFERENCES account,
    transfer_id bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL,
    debit text NOT NULL,
    credit text NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    hold_id uuid,
    lot_id uuid,
    op_key text NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    meta jsonb,
    PRIMARY KEY (tenant_id, transfer_id),
    UNIQUE (tenant_id, op_key),
    CONSTRAINT posting_rule CHECK ((kind, debit, credit) IN (
        ('grant', 'issued', 'available'),
        ('reserve', 'available', 'held'),
        ('charge', 'held', 'charged'),
        ('release', 'held', 'available'),
        ('expire', 'available', 'expired'),
        ('refund', 'charged', 'available'),
        ('adjust_out', 'available', 'issued'))),
    CONSTRAINT hold_rule CHECK ((kind IN ('reserve', 'charge', 'release')) <= (hold_id IS NOT NULL))
);
CREATE INDEX transfer_by_hold ON transfer (tenant_id, hold_id) WHERE hold_id IS NOT NULL;
CREATE INDEX transfer_by_kind ON transfer (tenant_id, kind, recorded_at);

-- A hold binds credits for one piece of work; `fence` is the token of the run that may charge it.
CREATE TABLE hold (
    tenant_id uuid NOT NULL REFERENCES account,
    hold_id uuid NOT NULL,
    reserved bigint NOT NULL CHECK (reserved >= 0),
    charged bigint NOT NULL DEFAULT 0 CHECK (charged >= 0),
    released bigint NOT NULL DEFAULT 0 CHECK (released >= 0),
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
    fence bigint NOT NULL DEFAULT 0,
    flush_no integer NOT NULL DEFAULT 0,
    opened_at timestamptz NOT NULL DEFAULT now(),
    closed_at timestamptz,
    PRIMARY KEY (tenant_id, hold_id),
    CONSTRAINT never_over_reserve CHECK (charged + released <= reserved),
    CONSTRAINT closed_is_settled CHECK (
        (state = 'closed') = (closed_at IS NOT NULL)
        AND (state = 'open' OR charged + released = reserved))
) WITH (fillfactor = 50);
CREATE INDEX hold_open ON hold (tenant_id) WHERE state = 'open';

-- Which lots fund a hold, first-funded first; charges eat from the front, releases give back the rear.
CREATE TABLE hold_allocation (
    tenant_id uuid NOT NULL,
    hold_id uuid NOT NULL,
    position integer NOT NULL CHECK (position > 0),
    lot_id uuid NOT NULL,
    reserved bigint NOT NULL CHECK (reserved > 0),
    released bigint NOT NULL DEFAULT 0 CHECK (released BETWEEN 0 AND reserved),
    PRIMARY KEY (tenant_id, hold_id, position),
    FOREIGN KEY (tenant_id, hold_id) REFERENCES hold,
    FOREIGN KEY (tenant_id, lot_id) REFERENCES lot
);

CREATE FUNCTION refuse_change_v1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on % is refused: its rows are append-only', tg_op, tg_table_name
        USING ERRCODE = 'PT009';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON transfer
    FOR EACH ROW EXECUTE FUNCTION refuse_change_v1();
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON transfer
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_v1();
