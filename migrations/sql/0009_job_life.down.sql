REVOKE DELETE ON excluded_url FROM pagetoll_app, pagetoll_system;
DROP TABLE dispatch_clock;
DROP TABLE dispatch;
DROP VIEW job_status;
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
GRANT SELECT ON job_status TO pagetoll_app, pagetoll_system;
DROP TRIGGER state_follows ON job;
DROP FUNCTION refuse_state_change_v1();
DROP FUNCTION may_follow_v1(text, text);
DROP INDEX excluded_over_limit;
ALTER TABLE excluded_url DROP COLUMN over_page_limit, DROP COLUMN source;
DROP INDEX job_line;
DROP INDEX job_slot;
DROP INDEX job_handed_back;
DROP INDEX job_paused;
-- A step back knows no pause: those jobs wait in the line again.
UPDATE job SET state = 'queued', queue_limit_at = now() + interval '30 min',
    deadline_at = now() + interval '30 min' + make_interval(secs => coalesce(seconds_left, timeout_seconds)),
    paused_at = NULL, pause_reason = NULL
WHERE state = 'paused';
ALTER TABLE job DROP CONSTRAINT paused_has_its_cause, DROP CONSTRAINT paused_has_no_run,
    DROP COLUMN priority, DROP COLUMN max_credits, DROP COLUMN paused_at, DROP COLUMN pause_reason,
    DROP COLUMN seconds_left, DROP COLUMN extensions, DROP COLUMN barren_deaths,
    DROP COLUMN settled_at_death;
ALTER TABLE plan DROP COLUMN weight, DROP COLUMN pages_per_second;
