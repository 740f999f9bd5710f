-- What a job may cost: more prices, a tenant's own prices, quotes, caps, and notices.
INSERT INTO price (price_version, kind, outcome, credits)
SELECT 1, kind, outcome, credits
FROM unnest(ARRAY['crawl', 'batch', 'scrape', 'link_extract', 'audit']) AS kind,
     (VALUES ('page', 1), ('page_unchanged', 1), ('pdf_page', 1), ('browser_page', 5))
         AS line (outcome, credits)
ON CONFLICT DO NOTHING;
INSERT INTO price (price_version, kind, outcome, credits)
VALUES (1, 'map', 'page', 1), (1, 'link_check', 'page', 1), (1, 'link_check', 'link', 1),
       (1, 'intent', 'page', 1);

CREATE TABLE price_override (
    tenant_id uuid NOT NULL REFERENCES tenant,
    kind text NOT NULL,
    outcome text NOT NULL,
    credits bigint NOT NULL CHECK (credits BETWEEN 0 AND 1000000),
    reason text NOT NULL,
    actor text NOT NULL,
    set_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, kind, outcome)
);

-- A price promised for 15 minutes, for exactly this request.
CREATE TABLE quote (
    tenant_id uuid NOT NULL REFERENCES tenant,
    quote_id uuid NOT NULL,
    kind text NOT NULL,
    request_hash bytea NOT NULL,
    request jsonb NOT NULL,
    price_version integer NOT NULL,
    prices jsonb NOT NULL,
    ceiling bigint NOT NULL CHECK (ceiling >= 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL DEFAULT now() + interval '15 min',
    -- what a look at the site found, where one was asked for
    probe_state text NOT NULL DEFAULT 'none' CHECK (probe_state IN ('none', 'wanted', 'taken', 'done')),
    probe jsonb,
    PRIMARY KEY (tenant_id, quote_id)
);
CREATE INDEX quote_to_probe ON quote (tenant_id, created_at) WHERE probe_state = 'wanted';

ALTER TABLE job ADD COLUMN quote_id uuid;
ALTER TABLE job ADD FOREIGN KEY (tenant_id, quote_id) REFERENCES quote;

-- The most that a hold may ever bind, and so the most that a job can be charged.
ALTER TABLE hold ADD COLUMN ceiling bigint;
UPDATE hold SET ceiling = reserved;
ALTER TABLE hold ALTER COLUMN ceiling SET NOT NULL;
ALTER TABLE hold ADD COLUMN top_ups integer NOT NULL DEFAULT 0;
ALTER TABLE hold ADD CONSTRAINT never_over_the_quoted_ceiling CHECK (reserved <= ceiling);

-- Which price a page was charged at.
ALTER TABLE page ADD COLUMN outcome text;
ALTER TABLE page DISABLE TRIGGER final_page_stays;
UPDATE page SET outcome = 'page' WHERE state = 'succeeded';
ALTER TABLE page ENABLE TRIGGER final_page_stays;
ALTER TABLE page ADD CONSTRAINT a_success_has_its_outcome
    CHECK ((state = 'succeeded') = (outcome IS NOT NULL));

-- From a charge to its pages: for explanations, and for proofs that read no more than this.
CREATE INDEX page_by_charge ON page (tenant_id, transfer_id) INCLUDE (job_id, credits, fence)
    WHERE transfer_id IS NOT NULL;

-- A cap on what a tenant, one of its keys or one of its tags may commit in a day, a month, or ever.
CREATE TABLE budget (
    tenant_id uuid NOT NULL REFERENCES tenant,
    budget_id uuid NOT NULL,
    node text NOT NULL CHECK (node IN ('tenant', 'key', 'tag')),
    subject text NOT NULL CHECK ((node = 'tenant') = (subject = '') AND length(subject) <= 64),
    period text NOT NULL CHECK (period IN ('day', 'month', 'total')),
    cap bigint NOT NULL CHECK (cap >= 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, budget_id),
    UNIQUE (tenant_id, node, subject, period)
);
-- committed = reserved - released of the holds that count: charges do not move it.
CREATE TABLE budget_use (
    tenant_id uuid NOT NULL,
    budget_id uuid NOT NULL,
    period_start timestamptz NOT NULL,
    committed bigint NOT NULL DEFAULT 0 CHECK (committed >= 0),
    told_low boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, budget_id, period_start),
    FOREIGN KEY (tenant_id, budget_id) REFERENCES budget ON DELETE CASCADE
) WITH (fillfactor = 50);
CREATE TABLE hold_budget (
    tenant_id uuid NOT NULL,
    hold_id uuid NOT NULL,
    budget_id uuid NOT NULL,
    period_start timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, hold_id, budget_id),
    FOREIGN KEY (tenant_id, hold_id) REFERENCES hold,
    FOREIGN KEY (tenant_id, budget_id, period_start) REFERENCES budget_use ON DELETE CASCADE
);
CREATE INDEX hold_budget_by_use ON hold_budget (tenant_id, budget_id, period_start);

-- Something the tenant should hear of once: credits.low, budget.low.
ALTER TABLE account ADD COLUMN low_at bigint CHECK (low_at >= 0);
ALTER TABLE account ADD COLUMN told_low boolean NOT NULL DEFAULT false;
CREATE TABLE notice (
    tenant_id uuid NOT NULL REFERENCES tenant,
    notice_id bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL CHECK (kind IN ('credits.low', 'budget.low')),
    detail jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, notice_id)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON notice
    FOR EACH ROW EXECUTE FUNCTION refuse_change_v1();

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['price_override', 'quote', 'budget', 'budget_use', 'hold_budget',
                                'notice'] LOOP
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
GRANT SELECT ON price_override TO pagetoll_app;
GRANT SELECT, INSERT ON quote, budget, budget_use, hold_budget, notice TO pagetoll_app;
GRANT UPDATE ON budget, budget_use TO pagetoll_app;
GRANT DELETE ON budget, budget_use, hold_budget TO pagetoll_app;
GRANT UPDATE ON price_override, quote, budget, budget_use TO pagetoll_system;
GRANT DELETE ON price_override, budget, budget_use, hold_budget TO pagetoll_system;
