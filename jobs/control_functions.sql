-- Pause and resume: what becomes of a job's run, its lease and the time that is left of it.

-- A job comes to rest: no run, nothing in flight, its time frozen. The caller has locked the row.
CREATE OR REPLACE FUNCTION rest_job_v1(p_tenant uuid, p_job uuid, p_reason text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM requeue_pages_v1(p_tenant, p_job);
    UPDATE job SET
        state = 'paused', paused_at = now(), pause_reason = p_reason,
        -- A job that waits in the line has not begun to use its time.
        seconds_left = CASE WHEN state = 'queued' THEN seconds_left
            ELSE greatest(0, extract(epoch FROM deadline_at - now())) END,
        lease_token = lease_token + 1, lease_owner = NULL, lease_until = NULL, rung_at = NULL,
        updated_at = now()
    WHERE tenant_id = p_tenant AND job_id = p_job;
END
$$;

-- Pauses at once where no run is alive, else asks the run to let its pages in flight finish.
-- The state after it; `refused` and nothing has changed where a job is at its end or on the way there.
CREATE OR REPLACE FUNCTION pause_job_v1(p_tenant uuid, p_job uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'not_found';
    ELSIF j.finished_at IS NOT NULL OR j.state = 'cancelling' THEN
        RETURN 'refused';
    ELSIF j.state = 'paused' THEN
        -- Whoever asks for a pause does not want it to end by itself.
        UPDATE job SET pause_reason = 'requested'
        WHERE tenant_id = p_tenant AND job_id = p_job AND pause_reason <> 'requested';
    ELSIF j.state = 'queued' OR j.lease_owner IS NULL OR j.lease_until <= now() THEN
        PERFORM rest_job_v1(p_tenant, p_job, 'requested');
    ELSE
        UPDATE job SET state = 'pausing', updated_at = now()
        WHERE tenant_id = p_tenant AND job_id = p_job;
        RETURN 'pausing';
    END IF;
    RETURN 'paused';
END
$$;

-- Back into the line with a queue limit of its own; a pause that has not come to rest is taken back.
-- The state after it; a job that waits or runs already is left as it is.
CREATE OR REPLACE FUNCTION resume_job_v1(p_tenant uuid, p_job uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'not_found';
    ELSIF j.finished_at IS NOT NULL OR j.state = 'cancelling' THEN
        RETURN 'refused';
    ELSIF j.state = 'pausing' THEN
        UPDATE job SET state = 'running', updated_at = now()
        WHERE tenant_id = p_tenant AND job_id = p_job;
        RETURN 'running';
    ELSIF j.state <> 'paused' THEN
        RETURN j.state;
    END IF;
    UPDATE job SET
        state = 'queued', paused_at = NULL, pause_reason = NULL, rung_at = now(),
        queue_limit_at = now() + interval '30 min',
        deadline_at = now() + interval '30 min'
            + make_interval(secs => coalesce(seconds_left, timeout_seconds)),
        updated_at = now()
    WHERE tenant_id = p_tenant AND job_id = p_job;
    RETURN 'queued';
END
$$;

-- The run has let its pages finish: `paused`; `handed_back` where the pause was taken back meanwhile;
-- `cancelled` where only a cancel is left to finish; `stale` where the job is not this run's any more.
CREATE OR REPLACE FUNCTION end_pause_v1(p_tenant uuid, p_job uuid, p_token bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF j.lease_token IS DISTINCT FROM p_token OR j.lease_owner IS NULL THEN
        RETURN 'stale';
    ELSIF j.state = 'cancelling' THEN
        RETURN 'cancelled';
    ELSIF j.state = 'running' THEN
        PERFORM hand_back_v1(p_tenant, p_job, p_token);
        RETURN 'handed_back';
    END IF;
    PERFORM rest_job_v1(p_tenant, p_job, 'requested');
    RETURN 'paused';
END
$$;

-- A run waits for credits: `paused`, and the watchdog resumes the job when there are some.
-- `unfinished` where somebody has extended the job since the run last looked.
CREATE OR REPLACE FUNCTION pause_for_budget_v1(
    p_tenant uuid, p_job uuid, p_token bigint, p_extensions integer
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF j.lease_token IS DISTINCT FROM p_token OR j.lease_owner IS NULL THEN
        RETURN 'stale';
    ELSIF j.state = 'cancelling' THEN
        RETURN 'cancelled';
    ELSIF j.extensions <> p_extensions THEN
        RETURN 'unfinished';
    END IF;
    PERFORM rest_job_v1(p_tenant, p_job, CASE j.state WHEN 'pausing' THEN 'requested' ELSE 'budget' END);
    RETURN 'paused';
END
$$;

-- URLs that only the page limit kept out are admitted after all, shallowest first.
CREATE OR REPLACE FUNCTION readmit_urls_v1(p_tenant uuid, p_job uuid) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    j job;
    moved integer;
BEGIN
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job;
    WITH next AS MATERIALIZED (
        SELECT e.url_key, e.url, e.depth, e.source, e.found_on,
               row_number() OVER (ORDER BY e.depth, e.found_on, e.url_key) AS place
        FROM excluded_url e
        WHERE e.tenant_id = p_tenant AND e.job_id = p_job AND e.over_page_limit
        ORDER BY e.depth, e.found_on, e.url_key LIMIT j.max_pages - j.admitted
    ), gone AS (
        DELETE FROM excluded_url e USING next n
        WHERE e.tenant_id = p_tenant AND e.job_id = p_job AND e.url_key = n.url_key
    ), admitted AS (
        INSERT INTO page (tenant_id, job_id, page_no, url, url_key, depth, source, found_on)
        SELECT p_tenant, p_job, j.admitted + n.place - 1, n.url, n.url_key, n.depth, n.source,
               n.found_on
        FROM next n RETURNING 1
    )
    SELECT count(*) INTO moved FROM admitted;
    UPDATE job SET
        admitted = admitted + moved, queued = queued + moved,
        discovery_excluded = discovery_excluded - moved, excluded_listed = excluded_listed - moved,
        -- Beyond what is listed there may be more that nobody can name.
        page_limit_met = page_limit_met AND (admitted + moved >= max_pages
                                             OR discovery_excluded > excluded_listed),
        updated_at = now()
    WHERE tenant_id = p_tenant AND job_id = p_job;
    RETURN moved;
END
$$;
