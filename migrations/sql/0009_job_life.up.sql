-- Job life: fair dispatch with weights and priorities, pauses, extensions, runs that keep dying.
ALTER TABLE plan
    ADD COLUMN weight integer NOT NULL DEFAULT 1 CHECK (weight BETWEEN 1 AND 1000),
    -- 0: no limit
    ADD COLUMN pages_per_second integer NOT NULL DEFAULT 0
        CHECK (pages_per_second BETWEEN 0 AND 100000);

ALTER TABLE job
    ADD COLUMN priority smallint NOT NULL DEFAULT 50 CHECK (priority BETWEEN 0 AND 100),
    -- the customer's own ceiling, as it is now; NULL: none, or the one in the request
    ADD COLUMN max_credits bigint CHECK (max_credits > 0),
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN pause_reason text CHECK (pause_reason IN ('requested', 'budget')),
    -- the time that was left when a pause froze it, until a run claims it; NULL: all of it
    ADD COLUMN seconds_left double precision CHECK (seconds_left >= 0),
    ADD COLUMN extensions integer NOT NULL DEFAULT 0,
    -- deaths of runs in a row without a page settled in between
    ADD COLUMN barren_deaths integer NOT NULL DEFAULT 0,
    ADD COLUMN settled_at_death integer NOT NULL DEFAULT 0,
    ADD CONSTRAINT paused_has_its_cause CHECK (
        (state = 'paused') = (paused_at IS NOT NULL)
        AND (paused_at IS NULL) = (pause_reason IS NULL)),
    ADD CONSTRAINT paused_has_no_run CHECK (state <> 'paused' OR lease_owner IS NULL);

-- The line of each tenant, and the slots: a slot is the job's own lease, so they cannot drift apart.
CREATE INDEX job_line ON job (tenant_id, priority DESC, created_at, job_id) WHERE state = 'queued';
CREATE INDEX job_slot ON job (tenant_id) WHERE lease_owner IS NOT NULL;
CREATE INDEX job_handed_back ON job (created_at) WHERE state = 'running' AND lease_owner IS NULL;
CREATE INDEX job_paused ON job (paused_at) WHERE state = 'paused';

-- Where each tenant stands in the rotation (stride scheduling): a start moves it on by 1 / weight.
CREATE TABLE dispatch (
    tenant_id uuid PRIMARY KEY REFERENCES tenant,
    pass double precision NOT NULL,
    started bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);
CREATE TABLE dispatch_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    pass double precision NOT NULL DEFAULT 0
);
INSERT INTO dispatch_clock DEFAULT VALUES;

-- What an extension admits after all: URLs that nothing but the page limit kept out.
ALTER TABLE excluded_url
    ADD COLUMN over_page_limit boolean NOT NULL DEFAULT false,
    ADD COLUMN source text NOT NULL DEFAULT 'link' CHECK (source IN ('seed', 'link', 'sitemap'));
CREATE INDEX excluded_over_limit ON excluded_url (tenant_id, job_id, depth, found_on, url_key)
    WHERE over_page_limit;

-- jobs/lifecycle.py draws the same table; a test holds them side by side.
CREATE FUNCTION may_follow_v1(p_before text, p_after text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT (p_before, p_after) IN (
        ('queued', 'running'), ('queued', 'paused'), ('queued', 'succeeded'), ('queued', 'failed'),
        ('queued', 'cancelled'),
        ('running', 'pausing'), ('running', 'paused'), ('running', 'cancelling'),
        ('running', 'succeeded'), ('running', 'failed'), ('running', 'cancelled'),
        ('pausing', 'running'), ('pausing', 'paused'), ('pausing', 'cancelling'),
        ('pausing', 'succeeded'), ('pausing', 'failed'), ('pausing', 'cancelled'),
        ('paused', 'queued'), ('paused', 'cancelled'),
        ('cancelling', 'cancelled'))
$$;
CREATE FUNCTION refuse_state_change_v1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % cannot go from % to %', old.job_id, old.state, new.state
        USING ERRCODE = 'PT409';
END
$$;
CREATE TRIGGER state_follows BEFORE UPDATE ON job FOR EACH ROW
    WHEN (old.state <> new.state AND NOT may_follow_v1(old.state, new.state))
    EXECUTE FUNCTION refuse_state_change_v1();

CREATE OR REPLACE VIEW job_status WITH (security_invoker = true) AS
SELECT j.tenant_id, j.job_id, j.parent_job_id, j.kind, j.state, j.phase, j.cancel_requested,
       j.partial, j.created_at, j.updated_at, j.started_at, j.finished_at, j.deadline_at,
       CASE WHEN h.state = 'closed' THEN j.expires_at END AS expires_at,
       j.completion_reason, j.error, j.warnings, j.tags, j.metadata,
       j.content_deleted_at IS NOT NULL
           OR (h.state = 'closed' AND j.expires_at <= now()) AS content_gone,
       j.discovery_excluded + j.admitted AS discovered, j.discovery_excluded, j.admitted,
       j.queued, j.in_flight, j.succeeded, j.failed, j.skipped,
       j.fetch_attempts, j.fetched_urls, j.browser_renders,
       h.reserved AS credits_reserved, h.charged AS credits_charged,
       h.released AS credits_released, h.state <> 'closed' AS settlement_pending,
       j.price_version, j.prices, j.max_pages, j.request ->> 'url' AS url,
       j.priority, j.timeout_seconds, j.paused_at, j.pause_reason, j.seconds_left
FROM job j JOIN hold h ON h.tenant_id = j.tenant_id AND h.hold_id = j.job_id;

ALTER TABLE dispatch ENABLE ROW LEVEL SECURITY;
ALTER TABLE dispatch FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON dispatch TO pagetoll_app
    USING (tenant_id = nullif(current_setting('pagetoll.tenant', true), '')::uuid);
CREATE POLICY every_tenant ON dispatch TO pagetoll_system USING (true);
GRANT SELECT, INSERT, UPDATE ON dispatch TO pagetoll_system;
GRANT SELECT, UPDATE ON dispatch_clock TO pagetoll_system;
GRANT DELETE ON excluded_url TO pagetoll_app, pagetoll_system;
