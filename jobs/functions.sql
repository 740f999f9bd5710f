-- What a job's rows go through, called by the money moves of accounting/functions.sql and by runs.
-- Nothing here touches a credit, a hold or a lot but the fence of a claimed job's hold.

-- Row-level security sees this tenant until the transaction ends. Whoever has entered one tenant, and
-- may not see all of them, cannot move another's money in the same transaction.
CREATE OR REPLACE FUNCTION enter_tenant_v1(p_tenant uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    entered text := current_setting('pagetoll.tenant', true);
BEGIN
    IF entered <> '' AND entered <> p_tenant::text AND current_user = 'pagetoll_app' THEN
        RAISE EXCEPTION 'tenant % is not the one that was entered', p_tenant USING ERRCODE = 'PT403';
    END IF;
    PERFORM set_config('pagetoll.tenant', p_tenant::text, true);
END
$$;

-- Jobs and their seed URLs, inserted by reserve_group_v1 in its transaction.
CREATE OR REPLACE FUNCTION insert_jobs_v1(p_tenant uuid, p_items jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO job (tenant_id, job_id, parent_job_id, key_id, kind, idempotency_key, request_hash,
                     request, tags, metadata, price_version, prices, quote_id, max_pages,
                     max_credits, priority, timeout_seconds, queue_limit_at, deadline_at,
                     admitted, queued)
    SELECT p_tenant, w.job_id, w.parent_job_id, w.key_id, w.kind, w.idempotency_key, w.request_hash,
           w.request, w.tags, w.metadata, w.price_version, w.prices, w.quote_id, w.max_pages,
           w.max_credits, coalesce(w.priority, 50), w.timeout_seconds, now() + interval '30 min',
           now() + interval '30 min' + make_interval(secs => w.timeout_seconds),
           jsonb_array_length(i.seeds), jsonb_array_length(i.seeds)
    FROM jsonb_to_recordset(p_items) AS i (job jsonb, seeds jsonb)
    CROSS JOIN jsonb_populate_record(NULL::job, i.job) AS w;
    INSERT INTO page (tenant_id, job_id, page_no, url, url_key, depth, source)
    SELECT p_tenant, (i.job ->> 'job_id')::uuid, s.place - 1, s.seed ->> 'url',
           decode(s.seed ->> 'key', 'hex'), 0, 'seed'
    FROM jsonb_to_recordset(p_items) AS i (job jsonb, seeds jsonb)
    CROSS JOIN jsonb_array_elements(i.seeds) WITH ORDINALITY AS s (seed, place);
END
$$;

-- Takes the next job for a worker's free slot. One claim at a time decides.
CREATE OR REPLACE FUNCTION claim_job_v1(p_owner text, p_lease interval)
RETURNS SETOF job LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    chosen job;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('pagetoll.dispatch'));
    SELECT * INTO chosen FROM next_handed_back_v1();
    IF chosen.job_id IS NULL THEN
        SELECT * INTO chosen FROM next_in_line_v1();
    END IF;
    IF chosen.job_id IS NULL THEN
        RETURN;
    END IF;
    UPDATE hold SET fence = chosen.lease_token + 1
    WHERE tenant_id = chosen.tenant_id AND hold_id = chosen.job_id AND state = 'open';
    RETURN QUERY UPDATE job SET
        state = 'running', phase = 'crawling', lease_token = lease_token + 1, lease_owner = p_owner,
        lease_until = now() + p_lease, started_at = coalesce(started_at, now()),
        deadline_at = CASE WHEN state = 'queued'
            THEN least(deadline_at,
                       now() + make_interval(secs => coalesce(seconds_left, timeout_seconds)))
            ELSE deadline_at END,
        seconds_left = NULL, updated_at = now()
    WHERE tenant_id = chosen.tenant_id AND job_id = chosen.job_id RETURNING *;
END
$$;

-- Tenants that may start a job now, with the slots each has: a slot is the lease of a running job.
CREATE OR REPLACE FUNCTION free_tenants_v1()
RETURNS TABLE (tenant_id uuid, weight integer, slots bigint) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE waiting AS (
        (SELECT j.tenant_id FROM job j WHERE j.state = 'queued' ORDER BY j.tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT j.tenant_id FROM job j WHERE j.state = 'queued' AND j.tenant_id > w.tenant_id
                ORDER BY j.tenant_id LIMIT 1)
        FROM waiting w WHERE w.tenant_id IS NOT NULL
    ), handed_back AS (
        SELECT DISTINCT j.tenant_id FROM job j WHERE j.state = 'running' AND j.lease_owner IS NULL
    ), busy AS (
        SELECT j.tenant_id, count(*) AS slots FROM job j WHERE j.lease_owner IS NOT NULL
        GROUP BY j.tenant_id
    )
    SELECT t.tenant_id, p.weight, coalesce(busy.slots, 0)
    FROM (SELECT w.tenant_id FROM waiting w UNION SELECT h.tenant_id FROM handed_back h) AS wants
    JOIN tenant t ON t.tenant_id = wants.tenant_id AND t.status = 'active'
    JOIN plan p ON p.plan_id = t.plan_id
    LEFT JOIN busy ON busy.tenant_id = t.tenant_id
    WHERE coalesce(busy.slots, 0) < p.running_jobs
$$;

-- So many runs in a row may die without a page settled; then the job is given up.
CREATE OR REPLACE FUNCTION deaths_limit_v1() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 10';

-- A job whose run died or was handed back goes on before new ones start.
CREATE OR REPLACE FUNCTION next_handed_back_v1() RETURNS SETOF job LANGUAGE sql AS $$
    SELECT j.* FROM job j
    WHERE j.state = 'running' AND j.lease_owner IS NULL AND j.deadline_at > now()
      AND j.barren_deaths < deaths_limit_v1()
      AND j.tenant_id IN (SELECT f.tenant_id FROM free_tenants_v1() f)
    ORDER BY j.created_at, j.job_id LIMIT 1 FOR NO KEY UPDATE OF j SKIP LOCKED
$$;

-- The next of those that wait: the tenant with the fewest slots for its weight; of equals the one
-- that is furthest behind in the rotation; of its jobs the one with the highest priority, then the
-- oldest. Stride scheduling (Waldspurger and Weihl, 1995): who comes back from a pause starts where
-- the others are, and gains nothing by having been away.
CREATE OR REPLACE FUNCTION next_in_line_v1() RETURNS SETOF job LANGUAGE plpgsql AS $$
DECLARE
    line record;
    chosen job;
BEGIN
    FOR line IN
        SELECT f.tenant_id, f.weight, greatest(coalesce(d.pass, 0), c.pass) AS pass
        FROM free_tenants_v1() f CROSS JOIN dispatch_clock c
        LEFT JOIN dispatch d ON d.tenant_id = f.tenant_id
        ORDER BY f.slots::double precision / f.weight, 3, f.tenant_id
    LOOP
        SELECT * INTO chosen FROM job j
        WHERE j.tenant_id = line.tenant_id AND j.state = 'queued' AND j.queue_limit_at > now()
        ORDER BY j.priority DESC, j.created_at, j.job_id
        LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        UPDATE dispatch_clock SET pass = line.pass WHERE pass < line.pass;
        INSERT INTO dispatch AS d (tenant_id, pass)
        VALUES (line.tenant_id, line.pass + 1.0 / line.weight)
        ON CONFLICT (tenant_id) DO UPDATE SET pass = excluded.pass, started = d.started + 1;
        RETURN NEXT chosen;
        RETURN;
    END LOOP;
END
$$;

-- Renews a lease and tells the run what it must know. No row: the lease is lost.
CREATE OR REPLACE FUNCTION renew_lease_v1(p_tenant uuid, p_job uuid, p_token bigint, p_lease interval)
RETURNS TABLE (job_state text, seconds_left double precision) LANGUAGE sql AS $$
    UPDATE job SET lease_until = now() + p_lease
    WHERE tenant_id = p_tenant AND job_id = p_job AND lease_token = p_token
      AND lease_owner IS NOT NULL
    RETURNING state, extract(epoch FROM deadline_at - now())::double precision
$$;

-- A run gives its job back: what it had in flight is queued again.
CREATE OR REPLACE FUNCTION hand_back_v1(p_tenant uuid, p_job uuid, p_token bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    standing text;
BEGIN
    SELECT state INTO standing FROM job
    WHERE tenant_id = p_tenant AND job_id = p_job AND lease_token = p_token
      AND lease_owner IS NOT NULL FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    ELSIF standing = 'pausing' THEN
        PERFORM rest_job_v1(p_tenant, p_job, 'requested');
        RETURN true;
    END IF;
    PERFORM requeue_pages_v1(p_tenant, p_job);
    UPDATE job SET lease_token = lease_token + 1, lease_owner = NULL, lease_until = NULL,
                   rung_at = NULL, updated_at = now()
    WHERE tenant_id = p_tenant AND job_id = p_job;
    RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION requeue_pages_v1(p_tenant uuid, p_job uuid)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moved integer;
BEGIN
    UPDATE page SET state = 'queued'
    WHERE tenant_id = p_tenant AND job_id = p_job AND settled_at IS NULL AND state = 'in_flight';
    GET DIAGNOSTICS moved = ROW_COUNT;
    UPDATE job SET queued = queued + moved, in_flight = in_flight - moved
    WHERE tenant_id = p_tenant AND job_id = p_job;
END
$$;

-- Frees the leases of dead runs, so that another worker goes on from the committed frontier.
-- A page that was alone in flight in two deaths has killed its worker: it fails, free of charge.
CREATE OR REPLACE FUNCTION free_leases_v1(p_limit integer)
RETURNS TABLE (tenant uuid, job uuid, owner text) LANGUAGE plpgsql AS $$
DECLARE
    dead job;
    settled integer;
BEGIN
    FOR dead IN
        SELECT * FROM job WHERE state IN ('running', 'pausing') AND lease_until <= now()
        ORDER BY lease_until LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        tenant := dead.tenant_id;
        job := dead.job_id;
        owner := dead.lease_owner;
        settled := dead.succeeded + dead.failed + dead.skipped;
        PERFORM fail_poison_page_v1(dead);
        PERFORM requeue_pages_v1(dead.tenant_id, dead.job_id);
        UPDATE job AS j SET lease_token = j.lease_token + 1, lease_owner = NULL, lease_until = NULL,
            deaths = j.deaths + 1, settled_at_death = settled, rung_at = NULL, updated_at = now(),
            barren_deaths = CASE WHEN settled > j.settled_at_death THEN 1
                                 ELSE j.barren_deaths + 1 END
        WHERE j.tenant_id = dead.tenant_id AND j.job_id = dead.job_id;
        IF dead.state = 'pausing' THEN
            PERFORM rest_job_v1(dead.tenant_id, dead.job_id, 'requested');
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION fail_poison_page_v1(p_dead job) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    alone page;
BEGIN
    IF p_dead.deaths < 3 OR p_dead.in_flight <> 1 THEN
        RETURN;
    END IF;
    SELECT * INTO alone FROM page
    WHERE tenant_id = p_dead.tenant_id AND job_id = p_dead.job_id
      AND settled_at IS NULL AND state = 'in_flight';
    IF alone.attempts < 4 THEN
        RETURN;
    END IF;
    UPDATE page SET state = 'failed', reason = 'internal_error', detail = 'killed_its_worker',
                    settled_at = now()
    WHERE tenant_id = alone.tenant_id AND job_id = alone.job_id AND page_no = alone.page_no;
    UPDATE job SET in_flight = in_flight - 1, failed = failed + 1
    WHERE tenant_id = p_dead.tenant_id AND job_id = p_dead.job_id;
END
$$;

-- A run takes URLs to fetch, shallowest first. The hold must still pay for all that is in flight.
CREATE OR REPLACE FUNCTION claim_pages_v1(
    p_tenant uuid, p_job uuid, p_token bigint, p_limit integer, p_by_level boolean
) RETURNS TABLE (page_no integer, url text, depth integer, attempts integer, source text)
LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    j job;
    outstanding bigint;
    taken integer;
BEGIN
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF j.lease_token <> p_token THEN
        RETURN;
    END IF;
    SELECT h.reserved - h.charged - h.released INTO outstanding
    FROM hold h WHERE h.tenant_id = p_tenant AND h.hold_id = p_job;
    RETURN QUERY SELECT * FROM take_pages_v1(j, j.in_flight, outstanding, p_limit, p_by_level);
    GET DIAGNOSTICS taken = ROW_COUNT;
    IF taken > 0 THEN
        UPDATE job SET queued = queued - taken, in_flight = in_flight + taken,
                       fetch_attempts = fetch_attempts + taken, updated_at = now()
        WHERE tenant_id = p_tenant AND job_id = p_job;
    END IF;
END
$$;

-- Queued pages become in flight, as many as what is outstanding pays for; called under the job's lock
-- by whoever counts them. After two deaths of a job's runs, pages that were in flight in both are taken
-- one at a time.
CREATE OR REPLACE FUNCTION take_pages_v1(
    p_job job, p_in_flight integer, p_outstanding bigint, p_limit integer, p_by_level boolean
) RETURNS TABLE (page_no integer, url text, depth integer, attempts integer, source text)
LANGUAGE plpgsql AS $$
DECLARE
    dearest bigint := dearest_price_v1(p_job.prices);
    affordable bigint := p_limit;
    level integer := 2147483647;
    suspects boolean := false;
    chosen tid[];
BEGIN
    IF p_limit <= 0 OR p_job.state <> 'running' OR p_job.deadline_at <= now() THEN
        RETURN;
    ELSIF dearest > 0 THEN
        affordable := least(p_limit, p_outstanding / dearest - p_in_flight);
    END IF;
    IF p_job.deaths >= 2 THEN
        SELECT EXISTS (SELECT FROM page p WHERE p.tenant_id = p_job.tenant_id AND p.job_id = p_job.job_id
                       AND p.settled_at IS NULL AND p.attempts >= 2) INTO suspects;
        affordable := CASE WHEN NOT suspects THEN affordable WHEN p_in_flight > 0 THEN 0
                           ELSE least(affordable, 1) END;
    END IF;
    IF p_by_level THEN
        -- The first by the index; min() is planned as a sum over all of them where few are expected.
        SELECT p.depth INTO level FROM page p WHERE p.tenant_id = p_job.tenant_id
            AND p.job_id = p_job.job_id AND p.settled_at IS NULL ORDER BY p.depth LIMIT 1;
    END IF;
    chosen := ARRAY(
        SELECT p.ctid FROM page p
        WHERE p.tenant_id = p_job.tenant_id AND p.job_id = p_job.job_id AND p.settled_at IS NULL
          AND p.state = 'queued' AND p.depth <= level AND (NOT suspects OR p.attempts >= 2)
        ORDER BY p.depth, p.page_no LIMIT greatest(affordable, 0));
    -- By place: a join would be planned with old statistics, and might read the whole job. Under the
    -- job's lock nobody moves a page; the state is looked at again all the same.
    RETURN QUERY
    WITH taken AS (
        UPDATE page AS p SET state = 'in_flight', attempts = p.attempts + 1
        WHERE p.ctid = ANY(chosen) AND p.state = 'queued'
        RETURNING p.page_no, p.url, p.depth, p.attempts, p.source
    )
    SELECT * FROM taken t ORDER BY t.depth, t.page_no;
END
$$;

-- Finished pages of one flush, each exactly once: a page that is twice in a batch ends as it was told
-- first, and what is final already is left alone. Called by settle_pages_v2 under the job's lock.
CREATE OR REPLACE FUNCTION write_pages_v2(
    p_tenant uuid, p_job uuid, p_token bigint, p_pages json, p_transfer bigint,
    OUT pages integer, OUT succeeded integer, OUT failed integer, OUT skipped integer,
    OUT fetched integer, OUT credits bigint
) LANGUAGE plpgsql AS $$
BEGIN
    WITH told AS (
        SELECT DISTINCT ON (t.page_no) t.* FROM ROWS FROM (json_to_recordset(p_pages) AS (
            page_no integer, state text, reason text, detail text, final_url text,
            http_status integer, content_type text, title text, bytes bigint, duration_ms integer,
            fetched_at timestamptz, content_hash text, segment text, segment_offset bigint,
            segment_length bigint, content_bytes bigint, outcome text, credits bigint))
            WITH ORDINALITY AS t (
                page_no, state, reason, detail, final_url, http_status, content_type, title, bytes,
                duration_ms, fetched_at, content_hash, segment, segment_offset, segment_length,
                content_bytes, outcome, credits, place)
        ORDER BY t.page_no, t.place
    ), open AS (
        -- OFFSET 0 keeps a look-up for each page; a join would read all that the job has.
        SELECT t.*, p.ctid AS row FROM told t CROSS JOIN LATERAL (
            SELECT p.ctid FROM page p WHERE p.tenant_id = p_tenant AND p.job_id = p_job
                AND p.page_no = t.page_no AND p.state = 'in_flight' OFFSET 0) AS p
    ), written AS (
        UPDATE page AS p SET
            state = d.state, reason = d.reason, detail = d.detail, final_url = d.final_url,
            http_status = d.http_status, content_type = d.content_type, title = d.title,
            bytes = d.bytes, duration_ms = d.duration_ms, fetched_at = d.fetched_at,
            content_hash = decode(d.content_hash, 'hex'), segment = d.segment,
            segment_offset = d.segment_offset, segment_length = d.segment_length,
            content_bytes = d.content_bytes,
            outcome = CASE WHEN d.state = 'succeeded' THEN d.outcome END,
            credits = CASE WHEN d.state = 'succeeded' THEN d.credits ELSE 0 END,
            transfer_id = CASE WHEN d.state = 'succeeded' AND d.credits > 0 THEN p_transfer END,
            fence = p_token, settled_at = now()
        FROM open AS d WHERE p.ctid = d.row
        RETURNING p.state, p.http_status, p.credits
    )
    SELECT count(*), count(*) FILTER (WHERE w.state = 'succeeded'),
           count(*) FILTER (WHERE w.state = 'failed'), count(*) FILTER (WHERE w.state = 'skipped'),
           count(w.http_status), coalesce(sum(w.credits), 0)
    INTO pages, succeeded, failed, skipped, fetched, credits FROM written w;
END
$$;

-- Newly discovered URLs: each canonical key once; admitted in order up to max_pages, the rest and
-- the refused are excluded. Beyond 20 x max_pages excluded URLs are counted, not listed.
CREATE OR REPLACE FUNCTION write_found_v2(
    p_job job, p_found json,
    OUT admitted integer, OUT refused integer, OUT listed integer, OUT page_limit boolean
) LANGUAGE plpgsql AS $$
BEGIN
    admitted := 0;
    refused := 0;
    listed := 0;
    page_limit := false;
    IF json_array_length(p_found) = 0 THEN
        RETURN;
    END IF;
    WITH found AS MATERIALIZED (
        SELECT DISTINCT ON (f.key) decode(f.key, 'hex') AS key, f.url, f.depth, f.source,
               f.found_on, f.excluded, f.place
        FROM ROWS FROM (json_to_recordset(p_found) AS (
            key text, url text, depth integer, source text, found_on integer, excluded text))
            WITH ORDINALITY AS f (key, url, depth, source, found_on, excluded, place)
        ORDER BY f.key, f.place
    ), fresh AS MATERIALIZED (
        SELECT f.*, row_number() OVER (PARTITION BY f.excluded IS NULL ORDER BY f.place) AS rank
        FROM found f
        -- OFFSET 0 keeps both a look-up for each URL; a join would read all that the job has.
        WHERE NOT EXISTS (SELECT FROM page p WHERE uuid_send(p.job_id) = uuid_send(p_job.job_id)
                          AND p.url_key = f.key OFFSET 0)
          AND NOT EXISTS (SELECT FROM excluded_url e WHERE e.tenant_id = p_job.tenant_id
                          AND e.job_id = p_job.job_id AND e.url_key = f.key OFFSET 0)
    ), taken AS (
        INSERT INTO page (tenant_id, job_id, page_no, url, url_key, depth, source, found_on)
        SELECT p_job.tenant_id, p_job.job_id, p_job.admitted + f.rank - 1, f.url, f.key, f.depth,
               f.source, f.found_on
        FROM fresh f WHERE f.excluded IS NULL AND f.rank <= p_job.max_pages - p_job.admitted
        RETURNING 1
    ), left_out AS MATERIALIZED (
        SELECT f.*, row_number() OVER (ORDER BY f.place) AS nth FROM fresh f
        WHERE f.excluded IS NOT NULL OR f.rank > p_job.max_pages - p_job.admitted
    ), told AS (
        INSERT INTO excluded_url (tenant_id, job_id, url_key, url, reason, depth, found_on, source,
                                  over_page_limit)
        SELECT p_job.tenant_id, p_job.job_id, o.key, o.url, coalesce(o.excluded, 'limit_reached'),
               o.depth, o.found_on, o.source, o.excluded IS NULL
        FROM left_out o WHERE o.nth <= 20::bigint * p_job.max_pages - p_job.excluded_listed
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM left_out),
           (SELECT count(*) FROM told), EXISTS (SELECT FROM left_out o WHERE o.excluded IS NULL)
    INTO admitted, refused, listed, page_limit;
END
$$;

-- What a flush changes in its job, in one write: the counters of its pages, of the URLs they led to and
-- of those taken next, and what else it tells: the phase, new warnings (100 at most), a level beyond
-- max_rounds.
CREATE OR REPLACE FUNCTION count_flush_v1(
    p_tenant uuid, p_job uuid, p_done record, p_found record, p_taken integer, p_facts jsonb
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE job SET
        in_flight = in_flight - p_done.pages + p_taken, succeeded = succeeded + p_done.succeeded,
        failed = failed + p_done.failed, skipped = skipped + p_done.skipped,
        fetched_urls = fetched_urls + p_done.fetched, fetch_attempts = fetch_attempts + p_taken,
        admitted = admitted + p_found.admitted,
        queued = queued + p_found.admitted - p_taken,
        discovery_excluded = discovery_excluded + p_found.refused,
        excluded_listed = excluded_listed + p_found.listed,
        page_limit_met = page_limit_met OR p_found.page_limit,
        round_limit_met = round_limit_met OR coalesce((p_facts ->> 'round_limit_met')::boolean, false),
        phase = coalesce(p_facts ->> 'phase', phase),
        warnings = CASE WHEN jsonb_array_length(warnings) < 100
                        THEN warnings || coalesce(p_facts -> 'warnings', '[]') ELSE warnings END,
        updated_at = now()
    WHERE tenant_id = p_tenant AND job_id = p_job;
END
$$;

-- At the end nothing stays open: what was queued or in flight is skipped with the end's reason.
CREATE OR REPLACE FUNCTION skip_open_pages_v1(p_tenant uuid, p_job uuid, p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moved integer;
BEGIN
    UPDATE page SET state = 'skipped', reason = p_reason, settled_at = now()
    WHERE tenant_id = p_tenant AND job_id = p_job AND settled_at IS NULL;
    GET DIAGNOSTICS moved = ROW_COUNT;
    UPDATE job SET skipped = skipped + moved, queued = 0, in_flight = 0
    WHERE tenant_id = p_tenant AND job_id = p_job;
END
$$;

-- How an end becomes a final state; jobs/lifecycle.py draws the same table.
CREATE OR REPLACE FUNCTION end_job_v1(p_tenant uuid, p_job uuid, p_reason text, p_error jsonb)
RETURNS void LANGUAGE sql AS $$
    UPDATE job SET
        state = CASE WHEN p_reason = 'cancelled' THEN 'cancelled'
                     WHEN succeeded > 0 THEN 'succeeded' ELSE 'failed' END,
        partial = succeeded > 0 AND (
            p_reason NOT IN ('frontier_exhausted', 'completed')
            OR warnings @> '[{"code": "source_failed"}]'),
        completion_reason = p_reason,
        error = CASE WHEN p_reason = 'cancelled' OR succeeded > 0 THEN NULL
                     ELSE coalesce(p_error, default_error_v1(p_reason)) END,
        phase = 'done', cancel_requested = cancel_requested OR p_reason = 'cancelled',
        finished_at = now(), updated_at = now(), expires_at = now() + retention_v1(tenant_id),
        lease_owner = NULL, lease_until = NULL, lease_token = lease_token + 1,
        paused_at = NULL, pause_reason = NULL, seconds_left = NULL
    WHERE tenant_id = p_tenant AND job_id = p_job
$$;

CREATE OR REPLACE FUNCTION default_error_v1(p_reason text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_reason
        WHEN 'deadline' THEN jsonb_build_object('reason', 'timeout', 'retryable', true,
            'message', 'the deadline passed before any page succeeded')
        WHEN 'budget' THEN jsonb_build_object('reason', 'budget_exhausted', 'retryable', false,
            'message', 'the credits of this job were used up before any page succeeded')
        WHEN 'internal_failure' THEN jsonb_build_object('reason', 'internal_error',
            'retryable', true, 'message', 'the job could not be run')
        ELSE jsonb_build_object('reason', 'upstream_error', 'retryable', true,
            'message', 'no page succeeded') END
$$;

-- One status at one instant, for one tenant. The setting is local to this call's transaction.
CREATE OR REPLACE FUNCTION read_status_v1(p_tenant uuid, p_job uuid)
RETURNS SETOF job_status LANGUAGE plpgsql AS $$
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    RETURN QUERY SELECT * FROM job_status s WHERE s.tenant_id = p_tenant AND s.job_id = p_job;
END
$$;

-- Where a waiting job stands among its tenant's own, 1 being the next, and in how many seconds it may
-- start: with as many runs at a time as the plan has, each as long as the last ones were.
CREATE OR REPLACE FUNCTION queue_place_v1(p_tenant uuid, p_job uuid)
RETURNS TABLE (queue_position bigint, starts_in_seconds integer) LANGUAGE plpgsql AS $$
DECLARE
    ahead bigint;
    free bigint;
    at_a_time integer;
    seconds double precision;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT count(*) INTO ahead FROM (
        SELECT FROM job o JOIN job j ON j.tenant_id = p_tenant AND j.job_id = p_job
        WHERE o.tenant_id = p_tenant AND o.state = 'queued'
          AND (o.priority > j.priority OR (o.priority = j.priority
               AND (o.created_at, o.job_id) < (j.created_at, j.job_id)))
        LIMIT 10000) AS line;
    SELECT p.running_jobs, p.running_jobs - count(o.job_id) INTO at_a_time, free
    FROM tenant t JOIN plan p USING (plan_id)
    LEFT JOIN job o ON o.tenant_id = t.tenant_id AND o.lease_owner IS NOT NULL
    WHERE t.tenant_id = p_tenant GROUP BY p.running_jobs;
    SELECT coalesce(avg(extract(epoch FROM r.finished_at - r.started_at)), 30) INTO seconds FROM (
        SELECT o.finished_at, o.started_at FROM job o
        WHERE o.tenant_id = p_tenant AND o.finished_at IS NOT NULL AND o.started_at IS NOT NULL
        ORDER BY o.created_at DESC LIMIT 20) AS r;
    RETURN QUERY SELECT ahead + 1,
        ceil(greatest(0, ahead + 1 - greatest(free, 0)) * seconds / at_a_time)::integer;
END
$$;

-- The lowest number among the pages that are not final: a look-up for each depth that is open.
CREATE OR REPLACE FUNCTION first_open_page_v1(p_tenant uuid, p_job uuid) RETURNS integer
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    head record;
    level integer := -1;
    lowest integer;
BEGIN
    LOOP
        SELECT p.depth, p.page_no INTO head FROM page p
        WHERE p.tenant_id = p_tenant AND p.job_id = p_job AND p.settled_at IS NULL
          AND p.depth > level
        ORDER BY p.depth, p.page_no LIMIT 1;
        EXIT WHEN NOT FOUND;
        lowest := least(lowest, head.page_no);
        level := head.depth;
    END LOOP;
    RETURN lowest;
END
$$;
