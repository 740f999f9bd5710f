-- The money moves, each one call, one round trip, one transaction (docs/money.md tells the rules).
-- Lock order, everywhere: job, hold, account, lot. plpgsql, because each inner statement sees what
-- was committed while it waited for a lock. Names carry a version; old and new run side by side.

-- What expired lots still hold leaves the balance; the caller has locked the account.
CREATE OR REPLACE FUNCTION expire_lots_v1(p_tenant uuid) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    expired lot;
    total bigint := 0;
BEGIN
    FOR expired IN
        SELECT * FROM lot
        WHERE tenant_id = p_tenant AND NOT exhausted AND expires_at <= now()
        ORDER BY lot_id FOR NO KEY UPDATE
    LOOP
        INSERT INTO transfer (tenant_id, kind, debit, credit, amount, lot_id, op_key)
        VALUES (p_tenant, 'expire', 'available', 'expired', expired.remaining, expired.lot_id,
                -- a lot may get credits back and expire again, even in one transaction
                'expire:' || expired.lot_id || ':' || gen_random_uuid());
        UPDATE lot SET remaining = 0, exhausted = true
        WHERE tenant_id = p_tenant AND lot_id = expired.lot_id;
        total := total + expired.remaining;
    END LOOP;
    IF total > 0 THEN
        UPDATE account SET available = available - total, version = version + 1
        WHERE tenant_id = p_tenant;
    END IF;
    RETURN total;
END
$$;

-- Credits given: a lot, its transfer, the balance. The same op_key again gives the same lot.
CREATE OR REPLACE FUNCTION grant_v1(
    p_tenant uuid, p_lot uuid, p_amount bigint, p_source text, p_op_key text,
    p_expires_at timestamptz, p_priority smallint, p_meta jsonb
) RETURNS TABLE (outcome text, granted_lot uuid) LANGUAGE plpgsql AS $$
DECLARE
    known lot;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    PERFORM 1 FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'no_tenant', NULL::uuid;
        RETURN;
    END IF;
    SELECT * INTO known FROM lot WHERE tenant_id = p_tenant AND op_key = p_op_key;
    IF FOUND THEN
        RETURN QUERY SELECT CASE WHEN known.amount = p_amount AND known.source = p_source
                                 THEN 'replayed' ELSE 'conflict' END, known.lot_id;
        RETURN;
    END IF;
    INSERT INTO lot (tenant_id, lot_id, source, amount, remaining, priority, expires_at, op_key)
    VALUES (p_tenant, p_lot, p_source, p_amount, p_amount, p_priority, p_expires_at, p_op_key);
    INSERT INTO transfer (tenant_id, kind, debit, credit, amount, lot_id, op_key, meta)
    VALUES (p_tenant, 'grant', 'issued', 'available', p_amount, p_lot, 'grant:' || p_op_key, p_meta);
    UPDATE account SET available = available + p_amount, version = version + 1
    WHERE tenant_id = p_tenant;
    PERFORM tell_low_credits_v1(p_tenant);
    RETURN QUERY SELECT 'granted', p_lot;
END
$$;

-- Credits ran low: the tenant is told once, and again only after they had been enough.
CREATE OR REPLACE FUNCTION tell_low_credits_v1(p_tenant uuid) RETURNS void LANGUAGE sql AS $$
    WITH changed AS (
        UPDATE account SET told_low = available < low_at
        WHERE tenant_id = p_tenant AND low_at IS NOT NULL AND told_low <> (available < low_at)
        RETURNING available, low_at, told_low
    )
    INSERT INTO notice (tenant_id, kind, detail)
    SELECT p_tenant, 'credits.low', jsonb_build_object('available', available, 'low_at', low_at)
    FROM changed WHERE told_low
$$;

-- Gives back what a hold will not charge, to the last-funded lots first. What returns to a lot that
-- has expired meanwhile is released and expired at once. The caller has locked the hold.
CREATE OR REPLACE FUNCTION release_v1(p_tenant uuid, p_hold uuid, p_amount bigint, p_op_key text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    funding hold_allocation;
    left_over bigint := p_amount;
    back bigint;
BEGIN
    IF p_amount = 0 THEN
        RETURN;
    END IF;
    PERFORM 1 FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    INSERT INTO transfer (tenant_id, kind, debit, credit, amount, hold_id, op_key)
    VALUES (p_tenant, 'release', 'held', 'available', p_amount, p_hold, p_op_key);
    FOR funding IN
        SELECT * FROM hold_allocation
        WHERE tenant_id = p_tenant AND hold_id = p_hold AND released < reserved
        ORDER BY position DESC
    LOOP
        EXIT WHEN left_over = 0;
        back := least(left_over, funding.reserved - funding.released);
        UPDATE hold_allocation SET released = released + back
        WHERE tenant_id = p_tenant AND hold_id = p_hold AND position = funding.position;
        UPDATE lot SET remaining = remaining + back, exhausted = false
        WHERE tenant_id = p_tenant AND lot_id = funding.lot_id;
        left_over := left_over - back;
    END LOOP;
    IF left_over <> 0 THEN
        RAISE EXCEPTION 'hold % cannot give back %', p_hold, p_amount USING ERRCODE = 'PT500';
    END IF;
    UPDATE hold SET released = released + p_amount WHERE tenant_id = p_tenant AND hold_id = p_hold;
    PERFORM uncommit_budgets_v1(p_tenant, p_hold, p_amount);
    UPDATE account SET available = available + p_amount, version = version + 1
    WHERE tenant_id = p_tenant;
    PERFORM expire_lots_v1(p_tenant);
END
$$;

-- Releases what is left of a hold and closes it; closing twice changes nothing.
CREATE OR REPLACE FUNCTION close_hold_v1(p_tenant uuid, p_hold uuid)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    h hold;
BEGIN
    SELECT * INTO h FROM hold WHERE tenant_id = p_tenant AND hold_id = p_hold FOR NO KEY UPDATE;
    IF h.state = 'closed' THEN
        RETURN 'already';
    END IF;
    PERFORM release_v1(p_tenant, p_hold, h.reserved - h.charged - h.released, 'release:' || p_hold);
    UPDATE hold SET state = 'closed', closed_at = now()
    WHERE tenant_id = p_tenant AND hold_id = p_hold;
    RETURN 'closed';
END
$$;

-- A rolling hold's next tranche, up to its ceiling: `topped_up`, or why not, and nothing has moved.
CREATE OR REPLACE FUNCTION top_up_v1(p_tenant uuid, p_job uuid, p_token bigint, p_amount bigint)
RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    j job;
    h hold;
    amount bigint;
    balance bigint;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF j.lease_token IS DISTINCT FROM p_token OR j.state <> 'running' THEN
        RETURN 'stale';
    END IF;
    SELECT * INTO h FROM hold WHERE tenant_id = p_tenant AND hold_id = p_job FOR NO KEY UPDATE;
    amount := least(p_amount, h.ceiling - h.reserved);
    IF amount <= 0 THEN
        RETURN 'at_ceiling';
    END IF;
    SELECT available INTO balance FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    balance := balance - expire_lots_v1(p_tenant);
    IF balance < amount THEN
        RETURN 'insufficient';
    ELSIF refusing_linked_budget_v1(p_tenant, p_job, amount) IS NOT NULL THEN
        RETURN 'over_budget';
    END IF;
    PERFORM grow_hold_v1(p_tenant, p_job, amount);
    RETURN 'topped_up';
END
$$;

-- A batch of finished pages, the URLs they discovered, the job's counters, the hold and the ledger
-- move together, or nothing does. Guarded by the lease's token; what is final already is left alone,
-- so that repeating a call whose commit was in doubt changes nothing.
-- Gives the answer, and with it up to `p_take` pages to fetch next: a row for each, or one without.
CREATE OR REPLACE FUNCTION settle_pages_v2(
    p_tenant uuid, p_job uuid, p_token bigint, p_pages json, p_found json, p_facts jsonb,
    p_take integer, p_by_level boolean
) RETURNS TABLE (
    answer text, page_no integer, url text, depth integer, attempts integer, source text
) LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    j job;
    h hold;
    done record;
    found record;
    taken integer;
    excess bigint;
    entry bigint;
BEGIN
    answer := 'stale';
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF j.lease_token IS DISTINCT FROM p_token OR j.state NOT IN ('running', 'pausing') THEN
        answer := CASE WHEN j.state = 'cancelling' THEN 'cancelled' ELSE 'stale' END;
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO h FROM hold WHERE tenant_id = p_tenant AND hold_id = p_job FOR NO KEY UPDATE;
    IF h.state <> 'open' OR h.fence <> p_token THEN
        RETURN NEXT;
        RETURN;
    END IF;
    -- Not before the locks: the feed counts on an entry's transaction being known (number_entries_v1).
    entry := nextval('transfer_transfer_id_seq');
    done := write_pages_v2(p_tenant, p_job, p_token, p_pages, entry);
    found := write_found_v2(j, p_found);
    excess := excess_v1(h.reserved - h.charged - done.credits - h.released,
                        j.max_pages - j.succeeded - j.failed - j.skipped - done.pages, j.prices);
    RETURN QUERY SELECT 'settled', t.* FROM take_pages_v1(
        j, j.in_flight - done.pages, h.reserved - h.charged - done.credits - h.released - excess,
        p_take, p_by_level) AS t;
    GET DIAGNOSTICS taken = ROW_COUNT;
    PERFORM count_flush_v1(p_tenant, p_job, done, found, taken, p_facts);
    PERFORM charge_v2(p_tenant, p_job, done.credits, entry, 'charge:' || p_job || ':' || h.flush_no + 1);
    PERFORM release_v1(p_tenant, p_job, excess, 'release:' || p_job || ':' || h.flush_no + 1);
    IF taken = 0 THEN
        answer := 'settled';
        RETURN NEXT;
    END IF;
END
$$;

-- Charges a hold for one flush under an entry's number that its pages carry; the hold is locked.
CREATE OR REPLACE FUNCTION charge_v2(
    p_tenant uuid, p_hold uuid, p_amount bigint, p_entry bigint, p_op_key text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_amount > 0 THEN
        INSERT INTO transfer (tenant_id, transfer_id, kind, debit, credit, amount, hold_id, op_key)
        OVERRIDING SYSTEM VALUE
        VALUES (p_tenant, p_entry, 'charge', 'held', 'charged', p_amount, p_hold, p_op_key);
    END IF;
    UPDATE hold SET charged = charged + p_amount, flush_no = flush_no + 1
    WHERE tenant_id = p_tenant AND hold_id = p_hold;
END
$$;

-- A hold never binds more than its job could still charge: every page that was admitted and not
-- charged, and every page that may still be admitted, at the dearest frozen price.
-- Below that, as under a ceiling of the customer's own or in tranches, nothing is given back early.
CREATE OR REPLACE FUNCTION excess_v1(p_bound bigint, p_pages integer, p_prices jsonb)
RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN greatest(p_bound - p_pages * dearest_price_v1(p_prices), 0);
END
$$;

CREATE OR REPLACE FUNCTION dearest_price_v1(p_prices jsonb) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT coalesce(max(value::bigint), 0) FROM jsonb_each_text(p_prices));
END
$$;

-- The end of a job: open URLs are skipped, the hold is closed, retention begins, in one transaction.
-- p_token NULL is the watchdog or a cancel, which need no lease. Ending twice changes nothing.
CREATE OR REPLACE FUNCTION finish_job_v1(
    p_tenant uuid, p_job uuid, p_token bigint, p_reason text, p_error jsonb
) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    j job;
    ending text := p_reason;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF j.finished_at IS NOT NULL THEN
        RETURN 'already';
    ELSIF p_token IS NOT NULL AND j.lease_token <> p_token THEN
        RETURN 'stale';
    ELSIF j.cancel_requested THEN
        ending := 'cancelled';
    END IF;
    PERFORM skip_open_pages_v1(p_tenant, p_job, CASE ending
        WHEN 'cancelled' THEN 'cancelled' WHEN 'deadline' THEN 'timeout'
        WHEN 'budget' THEN 'budget_exhausted' WHEN 'internal_failure' THEN 'internal_error'
        ELSE 'limit_reached' END);
    PERFORM close_hold_v1(p_tenant, p_job);
    PERFORM end_job_v1(p_tenant, p_job, ending, p_error);
    RETURN 'finished';
END
$$;

-- A run ends its job by what it last saw. `unfinished` and nothing has changed where somebody has
-- extended the job since, or has moved its deadline on: the run hands back, and another goes on.
CREATE OR REPLACE FUNCTION finish_run_v1(
    p_tenant uuid, p_job uuid, p_token bigint, p_reason text, p_error jsonb, p_extensions integer
) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    j job;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF j.finished_at IS NULL AND j.lease_token = p_token AND NOT j.cancel_requested
       AND (CASE p_reason WHEN 'deadline' THEN j.deadline_at > now() + interval '5 s'
                          WHEN 'internal_failure' THEN false
                          ELSE j.extensions <> p_extensions END) THEN
        RETURN 'unfinished';
    END IF;
    RETURN finish_job_v1(p_tenant, p_job, p_token, p_reason, p_error);
END
$$;

-- Cancels: at once where no run is alive, else asks the run, and from here on charges are refused.
CREATE OR REPLACE FUNCTION cancel_job_v1(p_tenant uuid, p_job uuid)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'not_found';
    ELSIF j.finished_at IS NOT NULL OR j.state = 'cancelling' THEN
        RETURN j.state;
    ELSIF j.lease_owner IS NULL OR j.lease_until <= now() THEN
        PERFORM finish_job_v1(p_tenant, p_job, NULL, 'cancelled', NULL);
        RETURN 'cancelled';
    END IF;
    UPDATE job SET state = 'cancelling', cancel_requested = true, updated_at = now()
    WHERE tenant_id = p_tenant AND job_id = p_job;
    RETURN 'cancelling';
END
$$;

-- The guards that PostgreSQL alone decides: queue limit, deadlines, cancels whose run has died,
-- pauses of a week, jobs whose runs keep dying.
-- A live run gets 10 s beyond its deadline for its last flush; rows are taken with SKIP LOCKED, so
-- that every gateway may sweep at the same time.
CREATE OR REPLACE FUNCTION sweep_overdue_v1(p_limit integer)
RETURNS TABLE (tenant uuid, job uuid, reason text, fault text) LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    FOR j IN
        SELECT * FROM job
        WHERE (state = 'queued' AND queue_limit_at <= now())
           OR (state IN ('running', 'pausing', 'cancelling') AND deadline_at <= now()
               AND (lease_owner IS NULL OR lease_until <= now()
                    OR deadline_at <= now() - interval '10 s'))
           OR (state = 'cancelling' AND (lease_owner IS NULL OR lease_until <= now()))
           OR (state = 'paused' AND paused_at <= now() - interval '7 days')
           OR (state = 'running' AND lease_owner IS NULL AND barren_deaths >= deaths_limit_v1())
        ORDER BY deadline_at LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        tenant := j.tenant_id;
        job := j.job_id;
        reason := CASE WHEN j.cancel_requested OR j.state = 'paused' THEN 'cancelled'
                       WHEN j.deadline_at > now() AND j.state = 'running' THEN 'internal_failure'
                       ELSE 'deadline' END;
        fault := NULL;
        -- One job that cannot be ended must not keep the others from it.
        BEGIN
            PERFORM finish_job_v1(j.tenant_id, j.job_id, NULL, reason, CASE
                WHEN j.state = 'queued' THEN jsonb_build_object(
                    'reason', 'timeout', 'retryable', true,
                    'message', 'job was not started within the 30-minute queue limit')
                WHEN reason = 'internal_failure' THEN jsonb_build_object(
                    'reason', 'internal_error', 'retryable', true,
                    'message', 'the job was given up: its last ' || j.barren_deaths
                               || ' runs died without a page done') END);
        EXCEPTION WHEN OTHERS THEN
            fault := sqlerrm;
        END;
        RETURN NEXT;
    END LOOP;
END
$$;

-- Final jobs whose hold is still open: only a crash between steps, or a leg outside, leaves one.
CREATE OR REPLACE FUNCTION settle_orphans_v1(p_limit integer)
RETURNS TABLE (tenant uuid, job uuid, fault text) LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    FOR j IN
        SELECT o.* FROM hold h JOIN job o ON o.tenant_id = h.tenant_id AND o.job_id = h.hold_id
        WHERE h.state = 'open' AND o.finished_at IS NOT NULL
        ORDER BY o.finished_at LIMIT p_limit FOR NO KEY UPDATE OF o SKIP LOCKED
    LOOP
        tenant := j.tenant_id;
        job := j.job_id;
        fault := NULL;
        BEGIN
            PERFORM close_hold_v1(tenant, job);
            UPDATE job AS o SET expires_at = now() + retention_v1(o.tenant_id)
            WHERE o.tenant_id = tenant AND o.job_id = j.job_id;
        EXCEPTION WHEN OTHERS THEN
            fault := sqlerrm;
        END;
        RETURN NEXT;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION retention_v1(p_tenant uuid) RETURNS interval LANGUAGE sql STABLE AS $$
    SELECT make_interval(hours => p.retention_hours) FROM tenant t JOIN plan p USING (plan_id)
    WHERE t.tenant_id = p_tenant
$$;
