-- Statements and the feed. Nothing here moves a credit: entries are read, added up and numbered.

-- The entries of a time, by kind: credits moved, and what they did to `available` and `held`.
-- Entries about work of an earlier month stand on lines of their own.
CREATE OR REPLACE FUNCTION statement_lines_v1(
    p_tenant uuid, p_from timestamptz, p_until timestamptz
) RETURNS TABLE (
    kind text, prior_period text, entries bigint, credits bigint, available bigint, held bigint
) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN t.kind = 'grant' AND l.source = 'adjust' THEN 'adjust_in' ELSE t.kind END,
           -- nearly all entries are of their own time: the look at an older one is kept from them
           CASE WHEN t.kind = 'refund' OR t.meta ? 'occurred_at' THEN prior_period_v1(t, p_from) END,
           count(*), sum(t.amount)::bigint,
           sum(CASE 'available' WHEN t.credit THEN t.amount WHEN t.debit THEN -t.amount ELSE 0 END)
               ::bigint,
           sum(CASE 'held' WHEN t.credit THEN t.amount WHEN t.debit THEN -t.amount ELSE 0 END)
               ::bigint
    FROM transfer t
    LEFT JOIN lot l ON t.kind = 'grant' AND l.tenant_id = t.tenant_id AND l.lot_id = t.lot_id
    WHERE t.tenant_id = p_tenant AND t.recorded_at >= p_from AND t.recorded_at < p_until
    GROUP BY 1, 2
$$;

-- The month in which an entry's work was, where that is before the month of p_from; else null. It
-- is what meta.occurred_at says, and for a refund the month of the first charge it gives back.
CREATE OR REPLACE FUNCTION prior_period_v1(t transfer, p_from timestamptz) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT w.month FROM (SELECT CASE
        WHEN t.meta ->> 'occurred_at' ~ '^\d{4}-(0[1-9]|1[0-2])-\d\dT[0-9:.]+Z$'
            THEN left(t.meta ->> 'occurred_at', 7)
        WHEN t.kind = 'refund' THEN (
            SELECT to_char(min(c.recorded_at) AT TIME ZONE 'UTC', 'YYYY-MM')
            FROM page_refund r JOIN page p USING (tenant_id, job_id, page_no)
            JOIN transfer c ON c.tenant_id = p.tenant_id AND c.transfer_id = p.transfer_id
            WHERE r.tenant_id = t.tenant_id AND r.transfer_id = t.transfer_id)
        END AS month) AS w
    WHERE w.month < to_char(p_from AT TIME ZONE 'UTC', 'YYYY-MM')
$$;

-- Closes a tenant's next month, if it ended by p_before and no transaction runs that could still
-- add to it. p_mark is the id of a transaction that began after p_before: once every older one has
-- ended, whatever they recorded is seen here, and nothing can be recorded then any more. Gives
-- `closed`, `known`, `not_due`, `waits`, or `broken` where the entries add up to less than nothing.
CREATE OR REPLACE FUNCTION close_period_v1(p_tenant uuid, p_before timestamptz, p_mark xid8)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    last period_close;
    month date;
    starts timestamptz;
    ends timestamptz;
BEGIN
    IF pg_snapshot_xmin(pg_current_snapshot()) <= p_mark THEN
        RETURN 'waits';
    END IF;
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO last FROM period_close WHERE tenant_id = p_tenant ORDER BY period DESC LIMIT 1;
    month := coalesce(last.period + interval '1 month', (
        SELECT date_trunc('month', recorded_at AT TIME ZONE 'UTC')
        FROM transfer WHERE tenant_id = p_tenant ORDER BY transfer_id LIMIT 1));
    starts := month::timestamp AT TIME ZONE 'UTC';
    ends := (month + interval '1 month') AT TIME ZONE 'UTC';
    IF ends IS NULL OR ends > p_before THEN
        RETURN 'not_due';
    END IF;
    INSERT INTO period_close (tenant_id, period, ends_at, opening, opening_held,
                              closing, closing_held, totals, last_transfer_id)
    SELECT p_tenant, month, ends, coalesce(last.closing, 0), coalesce(last.closing_held, 0),
           coalesce(last.closing, 0) + coalesce(sum(l.available + l.held), 0),
           coalesce(last.closing_held, 0) + coalesce(sum(l.held), 0),
           coalesce(jsonb_agg(to_jsonb(l) ORDER BY l.kind, l.prior_period NULLS FIRST), '[]'),
           coalesce((SELECT max(transfer_id) FROM transfer WHERE tenant_id = p_tenant
                     AND recorded_at >= starts AND recorded_at < ends), last.last_transfer_id, 0)
    FROM statement_lines_v1(p_tenant, starts, ends) AS l
    ON CONFLICT DO NOTHING;
    RETURN CASE WHEN FOUND THEN 'closed' ELSE 'known' END;
EXCEPTION WHEN check_violation THEN
    RETURN 'broken';
END
$$;

-- Gives entries their numbers, in the order of their ids; p_limit ids at most in one call. Ids are
-- not in the order of commits, so this takes two calls: the first notes how far ids have been given
-- out, the second numbers up to there if every transaction has ended that may have got one of them.
-- A transaction has its own id before it draws an entry's: money functions lock a row first. Call
-- this as a transaction of its own, so that the id of it is newer than what `last_value` counts.
CREATE OR REPLACE FUNCTION number_entries_v1(p_limit bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    given_out bigint := (SELECT CASE WHEN is_called THEN last_value ELSE 0 END
                         FROM transfer_transfer_id_seq);
    place feed_position;
    written bigint := 0;
BEGIN
    IF given_out = (SELECT numbered_through FROM feed_position) THEN
        RETURN 0;
    END IF;
    SELECT * INTO place FROM feed_position FOR UPDATE;
    IF place.next_through > place.numbered_through THEN
        IF pg_snapshot_xmin(pg_current_snapshot()) <= place.next_xid THEN
            -- an id from the future came out of a dump of another server, and is never reached
            UPDATE feed_position SET next_xid = pg_current_xact_id()
            WHERE next_xid > pg_current_xact_id();
            RETURN 0;
        END IF;
        WITH fresh AS MATERIALIZED (
            SELECT tenant_id, transfer_id,
                   row_number() OVER (PARTITION BY tenant_id ORDER BY transfer_id) AS nth
            FROM transfer
            WHERE transfer_id > place.numbered_through AND transfer_id <= place.next_through
        ), ends AS MATERIALIZED (
            SELECT f.tenant_id, coalesce((SELECT e.seq FROM usage_event e
                WHERE e.tenant_id = f.tenant_id ORDER BY e.seq DESC LIMIT 1), 0) AS seq
            FROM (SELECT DISTINCT tenant_id FROM fresh) AS f
        )
        INSERT INTO usage_event (tenant_id, seq, transfer_id)
        SELECT tenant_id, ends.seq + fresh.nth, transfer_id FROM fresh JOIN ends USING (tenant_id);
        GET DIAGNOSTICS written = ROW_COUNT;
    END IF;
    UPDATE feed_position SET
        numbered_through = place.next_through,
        next_through = greatest(place.next_through, least(given_out, place.next_through + p_limit)),
        next_xid = pg_current_xact_id();
    RETURN written;
END
$$;

-- Every final page and every refund of a time, with what usage is grouped by. A charged page counts
-- when its entry was recorded, so that pages and entries agree; any other when it became final.
CREATE OR REPLACE FUNCTION usage_facts_v1(
    p_tenant uuid, p_from timestamptz, p_until timestamptz
) RETURNS TABLE (
    kind text, key_id text, tags text[], url text, at timestamptz, state text,
    charged bigint, refunded bigint
) LANGUAGE sql STABLE AS $$
    SELECT j.kind, j.key_id, j.tags, p.url, coalesce(t.recorded_at, p.settled_at), p.state,
           p.credits, 0::bigint
    FROM job j
    JOIN page p ON p.tenant_id = j.tenant_id AND p.job_id = j.job_id
        AND p.settled_at IS NOT NULL
    LEFT JOIN transfer t ON t.tenant_id = p.tenant_id AND t.transfer_id = p.transfer_id
    -- an hour is more than a transaction can last: an end may carry a time before its last charge
    WHERE j.tenant_id = p_tenant AND j.created_at < p_until
      AND (j.finished_at IS NULL OR j.finished_at >= p_from - interval '1 hour')
      AND coalesce(t.recorded_at, p.settled_at) >= p_from
      AND coalesce(t.recorded_at, p.settled_at) < p_until
    UNION ALL
    SELECT j.kind, j.key_id, j.tags, p.url, t.recorded_at, NULL, 0, r.amount
    FROM transfer t
    JOIN page_refund r ON r.tenant_id = t.tenant_id AND r.transfer_id = t.transfer_id
    JOIN job j ON j.tenant_id = r.tenant_id AND j.job_id = r.job_id
    JOIN page p ON p.tenant_id = r.tenant_id AND p.job_id = r.job_id AND p.page_no = r.page_no
    WHERE t.tenant_id = p_tenant AND t.kind = 'refund'
      AND t.recorded_at >= p_from AND t.recorded_at < p_until
$$;
