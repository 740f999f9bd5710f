-- Corrections: refunds of pages, adjustments, the second person's approval, disputes.
CREATE TABLE dispute (
    tenant_id uuid NOT NULL,
    dispute_id uuid NOT NULL,
    job_id uuid NOT NULL,
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    opened_by text NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, dispute_id),
    FOREIGN KEY (tenant_id, job_id) REFERENCES job
);
CREATE INDEX dispute_by_job ON dispute (tenant_id, job_id, dispute_id);
CREATE INDEX dispute_by_id ON dispute (dispute_id);

-- `evidence` is what was stored of the page when its dispute was opened.
CREATE TABLE dispute_page (
    tenant_id uuid NOT NULL,
    dispute_id uuid NOT NULL,
    job_id uuid NOT NULL,
    page_no integer NOT NULL,
    evidence jsonb NOT NULL,
    PRIMARY KEY (tenant_id, dispute_id, page_no),
    FOREIGN KEY (tenant_id, dispute_id) REFERENCES dispute,
    FOREIGN KEY (tenant_id, job_id, page_no) REFERENCES page
);
CREATE INDEX dispute_page_by_page ON dispute_page (tenant_id, job_id, page_no);

-- Every change of credits that an operator asks for. Above the limit it waits for another key.
CREATE TABLE correction (
    tenant_id uuid NOT NULL REFERENCES account,
    correction_id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('adjust_in', 'adjust_out', 'refund')),
    amount bigint NOT NULL CHECK (amount > 0),
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    job_id uuid,
    page_nos integer[],
    -- how much of each page is refunded; NULL is all that it was charged
    page_credits bigint CHECK (page_credits > 0),
    op_key text CHECK (length(op_key) BETWEEN 1 AND 255),
    dispute_id uuid,
    needs_approval boolean NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'done', 'refused')),
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    approved_by text,
    refused_by text,
    refusal text,
    decided_at timestamptz,
    transfer_id bigint,
    PRIMARY KEY (tenant_id, correction_id),
    UNIQUE (tenant_id, op_key),
    FOREIGN KEY (tenant_id, job_id) REFERENCES job,
    FOREIGN KEY (tenant_id, dispute_id) REFERENCES dispute,
    FOREIGN KEY (tenant_id, transfer_id) REFERENCES transfer,
    CONSTRAINT two_persons CHECK (
        approved_by <> requested_by AND (
            state <> 'done' OR NOT needs_approval OR approved_by IS NOT NULL)),
    CONSTRAINT only_the_large_wait CHECK (state <> 'pending' OR needs_approval),
    CONSTRAINT done_has_its_entry CHECK ((state = 'done') = (transfer_id IS NOT NULL)),
    CONSTRAINT refused_by_someone CHECK (
        (state = 'refused') = (refused_by IS NOT NULL) AND (refused_by IS NULL) = (refusal IS NULL)),
    CONSTRAINT decided_has_its_time CHECK ((state = 'pending') = (decided_at IS NULL)),
    CONSTRAINT refunds_name_pages CHECK (
        (kind = 'refund') = (job_id IS NOT NULL) AND (kind = 'refund') = (page_nos IS NOT NULL)),
    CONSTRAINT named_by_its_cause CHECK ((op_key IS NULL) = (dispute_id IS NOT NULL))
);
CREATE UNIQUE INDEX correction_of_dispute ON correction (tenant_id, dispute_id)
    WHERE dispute_id IS NOT NULL AND state <> 'refused';
CREATE INDEX correction_by_id ON correction (correction_id);
CREATE INDEX correction_waiting ON correction (correction_id) WHERE state = 'pending';

-- The key is what makes a refund of a page happen once.
CREATE TABLE page_refund (
    tenant_id uuid NOT NULL,
    job_id uuid NOT NULL,
    page_no integer NOT NULL,
    transfer_id bigint NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    reason text NOT NULL,
    actor text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, job_id, page_no),
    FOREIGN KEY (tenant_id, job_id, page_no) REFERENCES page,
    FOREIGN KEY (tenant_id, transfer_id) REFERENCES transfer
);
CREATE INDEX page_refund_by_transfer ON page_refund (tenant_id, transfer_id);

CREATE TABLE dispute_decision (
    tenant_id uuid NOT NULL,
    dispute_id uuid NOT NULL,
    decision text NOT NULL CHECK (decision IN ('accepted', 'rejected')),
    reason text NOT NULL CHECK (length(reason) BETWEEN 1 AND 1000),
    decided_by text NOT NULL,
    decided_at timestamptz NOT NULL DEFAULT now(),
    correction_id uuid,
    PRIMARY KEY (tenant_id, dispute_id),
    FOREIGN KEY (tenant_id, dispute_id) REFERENCES dispute,
    FOREIGN KEY (tenant_id, correction_id) REFERENCES correction,
    CONSTRAINT a_rejection_moves_nothing CHECK (decision = 'accepted' OR correction_id IS NULL)
);

ALTER TABLE transfer ADD CONSTRAINT corrections_tell_why CHECK (
    kind NOT IN ('refund', 'adjust_out')
    OR coalesce(meta ->> 'reason' <> '' AND meta ->> 'actor' <> '', false));

-- A decided correction never changes, and what was asked for never does.
CREATE FUNCTION refuse_correction_change_v1() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    decision text[] := '{state,approved_by,refused_by,refusal,decided_at,transfer_id}';
BEGIN
    IF tg_op = 'UPDATE' AND old.state = 'pending'
       AND to_jsonb(new) - decision = to_jsonb(old) - decision THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION '% of correction % is refused', tg_op, old.correction_id
        USING ERRCODE = 'PT009';
END
$$;
CREATE TRIGGER decided_stays BEFORE UPDATE OR DELETE ON correction
    FOR EACH ROW EXECUTE FUNCTION refuse_correction_change_v1();

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['page_refund', 'dispute', 'dispute_page', 'dispute_decision'] LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I '
                       'FOR EACH ROW EXECUTE FUNCTION refuse_change_v1()', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['page_refund', 'dispute', 'dispute_page', 'dispute_decision',
                                'correction'] LOOP
        EXECUTE format('CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON %I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_v1()', name);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I TO pagetoll_app USING '
                       '(tenant_id = nullif(current_setting(''pagetoll.tenant'', true), '''')::uuid)',
                       name);
        EXECUTE format('CREATE POLICY every_tenant ON %I TO pagetoll_system USING (true)', name);
        EXECUTE format('GRANT SELECT, INSERT ON %I TO pagetoll_system', name);
    END LOOP;
END
$$;
GRANT UPDATE (state, approved_by, refused_by, refusal, decided_at, transfer_id) ON correction
    TO pagetoll_system;
GRANT SELECT ON page_refund, dispute_decision TO pagetoll_app;
GRANT SELECT, INSERT ON dispute, dispute_page TO pagetoll_app;
