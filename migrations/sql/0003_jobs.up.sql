-- Jobs and their pages. The frontier is the page table: queued, in_flight, then final for ever.
CREATE TABLE job (
    tenant_id uuid NOT NULL REFERENCES tenant,
    job_id uuid NOT NULL,
    parent_job_id uuid,
    key_id text NOT NULL,
    kind text NOT NULL CHECK (kind IN (
        'crawl', 'batch', 'map', 'link_extract', 'link_check', 'audit', 'scrape', 'intent')),
    state text NOT NULL DEFAULT 'queued' CHECK (state IN (
        'queued', 'running', 'pausing', 'paused', 'cancelling', 'succeeded', 'failed', 'cancelled')),
    phase text NOT NULL DEFAULT 'queued',
    idempotency_key text CHECK (length(idempotency_key) BETWEEN 1 AND 255),
    request_hash bytea NOT NULL,
    request jsonb NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    price_version integer NOT NULL,
    prices jsonb NOT NULL,
    max_pages integer NOT NULL CHECK (max_pages > 0),
    timeout_seconds integer NOT NULL CHECK (timeout_seconds > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    queue_limit_at timestamptz NOT NULL,
    started_at timestamptz,
    deadline_at timestamptz NOT NULL,
    finished_at timestamptz,
    expires_at timestamptz,
    content_deleted_at timestamptz,
    lease_token bigint NOT NULL DEFAULT 0,
    lease_owner text,
    lease_until timestamptz,
    deaths integer NOT NULL DEFAULT 0,
    rung_at timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    completion_reason text CHECK (completion_reason IN (
        'frontier_exhausted', 'completed', 'page_limit', 'round_limit', 'deadline', 'budget',
        'cancelled', 'upstream_failure', 'internal_failure')),
    error jsonb,
    partial boolean NOT NULL DEFAULT false,
    warnings jsonb NOT NULL DEFAULT '[]',
    discovery_excluded integer NOT NULL DEFAULT 0 CHECK (discovery_excluded >= 0),
    excluded_listed integer NOT NULL DEFAULT 0,
    admitted integer NOT NULL DEFAULT 0,
    queued integer NOT NULL DEFAULT 0 CHECK (queued >= 0),
    in_flight integer NOT NULL DEFAULT 0 CHECK (in_flight >= 0),
    succeeded integer NOT NULL DEFAULT 0 CHECK (succeeded >= 0),
    failed integer NOT NULL DEFAULT 0 CHECK (failed >= 0),
    skipped integer NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    page_limit_met boolean NOT NULL DEFAULT false,
    round_limit_met boolean NOT NULL DEFAULT false,
    fetch_attempts bigint NOT NULL DEFAULT 0 CHECK (fetch_attempts >= 0),
    fetched_urls bigint NOT NULL DEFAULT 0 CHECK (fetched_urls >= 0),
    browser_renders bigint NOT NULL DEFAULT 0 CHECK (browser_renders >= 0),
    PRIMARY KEY (tenant_id, job_id),
    CONSTRAINT every_admitted_page_has_one_state CHECK (
        admitted = queued + in_flight + succeeded + failed + skipped),
    CONSTRAINT never_more_than_asked_for CHECK (admitted <= max_pages),
    CONSTRAINT final_is_final CHECK (
        (state IN ('succeeded', 'failed', 'cancelled'))
            = (finished_at IS NOT NULL AND completion_reason IS NOT NULL)
        AND (finished_at IS NULL OR queued + in_flight = 0)
        AND (finished_at IS NULL OR lease_owner IS NULL)),
    CONSTRAINT retention_after_the_end CHECK (expires_at IS NULL OR finished_at IS NOT NULL)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX job_idempotency ON job (tenant_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX job_open ON job (tenant_id, state, created_at)
    WHERE state NOT IN ('succeeded', 'failed', 'cancelled');
CREATE INDEX job_newest ON job (tenant_id, created_at DESC, job_id DESC);
CREATE INDEX job_to_retain ON job (tenant_id, expires_at)
    WHERE expires_at IS NOT NULL AND content_deleted_at IS NULL;

CREATE TABLE page (
    tenant_id uuid NOT NULL,
    job_id uuid NOT NULL,
    page_no integer NOT NULL CHECK (page_no >= 0),
    url text NOT NULL,
    url_key bytea NOT NULL,
    depth integer NOT NULL CHECK (depth >= 0),
    source text NOT NULL CHECK (source IN ('seed', 'link', 'sitemap')),
    found_on integer,
    state text NOT NULL DEFAULT 'queued' CHECK (state IN (
        'queued', 'in_flight', 'succeeded', 'failed', 'skipped')),
    attempts integer NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0,
    reason text,
    detail text,
    final_url text,
    http_status integer,
    content_type text,
    title text,
    bytes bigint,
    duration_ms integer,
    fetched_at timestamptz,
    content_hash bytea,
    segment text,
    segment_offset bigint,
    segment_length bigint,
    -- what the segment's part expands to
    content_bytes bigint,
    credits bigint NOT NULL DEFAULT 0 CHECK (credits >= 0),
    transfer_id bigint,
    settled_at timestamptz,
    PRIMARY KEY (tenant_id, job_id, page_no),
    UNIQUE (tenant_id, job_id, url_key),
    FOREIGN KEY (tenant_id, job_id) REFERENCES job,
    FOREIGN KEY (tenant_id, transfer_id) REFERENCES transfer,
    CONSTRAINT only_success_is_charged CHECK (state = 'succeeded' OR credits = 0),
    CONSTRAINT a_charge_has_its_transfer CHECK ((credits > 0) = (transfer_id IS NOT NULL)),
    CONSTRAINT no_success_without_cause CHECK (
        (state IN ('failed', 'skipped')) = (reason IS NOT NULL)),
    CONSTRAINT final_has_its_time CHECK (
        (state IN ('succeeded', 'failed', 'skipped')) = (settled_at IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX page_queued ON page (tenant_id, job_id, depth, page_no) WHERE state = 'queued';
CREATE INDEX page_in_flight ON page (tenant_id, job_id, page_no) WHERE state = 'in_flight';

-- A final page never changes; retention may only clear where its content was.
CREATE FUNCTION refuse_final_page_change_v1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF tg_op = 'UPDATE' AND new.segment IS NULL AND new.segment_offset IS NULL
       AND new.segment_length IS NULL
       AND to_jsonb(new) - '{segment,segment_offset,segment_length}'::text[]
         = to_jsonb(old) - '{segment,segment_offset,segment_length}'::text[] THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION '% of final page % of job % is refused', tg_op, old.page_no, old.job_id
        USING ERRCODE = 'PT009';
END
$$;
CREATE TRIGGER final_page_stays BEFORE UPDATE OR DELETE ON page FOR EACH ROW
    WHEN (old.state IN ('succeeded', 'failed', 'skipped'))
    EXECUTE FUNCTION refuse_final_page_change_v1();

-- A final job never changes but for its retention, and for the settlement that a crash left behind.
CREATE FUNCTION refuse_final_job_change_v1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(new) - '{expires_at,content_deleted_at,updated_at}'::text[]
         = to_jsonb(old) - '{expires_at,content_deleted_at,updated_at}'::text[] THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'change of final job % is refused', old.job_id USING ERRCODE = 'PT009';
END
$$;
CREATE TRIGGER final_job_stays BEFORE UPDATE ON job FOR EACH ROW
    WHEN (old.finished_at IS NOT NULL) EXECUTE FUNCTION refuse_final_job_change_v1();

-- URLs that were discovered and not admitted: why a page is not in the results.
CREATE TABLE excluded_url (
    tenant_id uuid NOT NULL,
    job_id uuid NOT NULL,
    url_key bytea NOT NULL,
    url text NOT NULL,
    reason text NOT NULL,
    depth integer NOT NULL,
    found_on integer,
    PRIMARY KEY (tenant_id, job_id, url_key),
    FOREIGN KEY (tenant_id, job_id) REFERENCES job
);

-- What one status tells, of a job and its hold at one instant.
CREATE VIEW job_status WITH (security_invoker = true) AS
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
       j.price_version, j.prices, j.max_pages, j.request ->> 'url' AS url
FROM job j JOIN hold h ON h.tenant_id = j.tenant_id AND h.hold_id = j.job_id;
