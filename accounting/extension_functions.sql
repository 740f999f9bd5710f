-- A job that is not final gets more pages, more time or more credits; a paused one that waits for
-- credits goes on when there are some. Lock order as everywhere: job, hold, account, lot.

-- Raises the limits of a job to what is asked for; what is lower than now stays, so that the same
-- call again changes nothing. A full reservation is held further at once, a rolling one by a tranche
-- where it could not pay for the next page.
CREATE OR REPLACE FUNCTION extend_job_v1(
    p_tenant uuid, p_job uuid, p_max_pages integer, p_timeout integer, p_max_credits bigint,
    p_tranche_pages integer
) RETURNS TABLE (outcome text, moved bigint, available_credits bigint, refusal jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    pages integer;
    seconds integer;
    own bigint;
    answer record;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT * INTO j FROM job WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'not_found', 0::bigint, NULL::bigint, NULL::jsonb;
        RETURN;
    ELSIF j.finished_at IS NOT NULL OR j.state = 'cancelling' THEN
        RETURN QUERY SELECT 'refused', 0::bigint, NULL::bigint, NULL::jsonb;
        RETURN;
    END IF;
    pages := greatest(j.max_pages, p_max_pages);
    seconds := greatest(j.timeout_seconds, p_timeout);
    own := coalesce(j.max_credits, (j.request ->> 'max_credits')::bigint);
    IF own IS NOT NULL THEN
        own := greatest(own, p_max_credits);
    END IF;
    IF pages = j.max_pages AND seconds = j.timeout_seconds
       AND own IS NOT DISTINCT FROM coalesce(j.max_credits, (j.request ->> 'max_credits')::bigint) THEN
        RETURN QUERY SELECT 'extended', 0::bigint, NULL::bigint, NULL::jsonb;
        RETURN;
    END IF;
    SELECT * INTO answer FROM extend_hold_v1(j, least(pages * dearest_price_v1(j.prices), own),
                                             p_tranche_pages);
    IF answer.outcome <> 'extended' THEN
        RETURN QUERY SELECT answer.outcome, 0::bigint, answer.available_credits, answer.refusal;
        RETURN;
    END IF;
    UPDATE job SET
        max_pages = pages, timeout_seconds = seconds, max_credits = own, extensions = extensions + 1,
        seconds_left = seconds_left + (seconds - timeout_seconds),
        deadline_at = deadline_at + make_interval(secs => seconds - timeout_seconds),
        updated_at = now()
    WHERE tenant_id = p_tenant AND job_id = p_job;
    PERFORM readmit_urls_v1(p_tenant, p_job);
    RETURN QUERY SELECT 'extended', answer.moved, answer.available_credits, NULL::jsonb;
END
$$;

-- The hold's part of an extension: a higher ceiling, and the credits that it asks for now.
CREATE OR REPLACE FUNCTION extend_hold_v1(j job, p_ceiling bigint, p_tranche_pages integer)
RETURNS TABLE (outcome text, moved bigint, available_credits bigint, refusal jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    h hold;
    price bigint := dearest_price_v1(j.prices);
    amount bigint := 0;
    balance bigint;
    refused jsonb;
BEGIN
    SELECT * INTO h FROM hold WHERE tenant_id = j.tenant_id AND hold_id = j.job_id FOR NO KEY UPDATE;
    IF j.request ->> 'reservation' IS DISTINCT FROM 'rolling' THEN
        amount := p_ceiling - h.ceiling;
    ELSIF h.reserved - h.charged - h.released < (j.in_flight + 1) * price THEN
        amount := least(p_tranche_pages * price, p_ceiling - h.reserved);
    END IF;
    SELECT a.available INTO balance FROM account a JOIN tenant t USING (tenant_id)
    WHERE a.tenant_id = j.tenant_id AND t.status = 'active' AND t.frozen_at IS NULL
    FOR NO KEY UPDATE OF a;
    IF NOT FOUND THEN
        RETURN QUERY SELECT CASE WHEN t.status = 'active' THEN 'frozen' ELSE 'suspended' END,
                            amount, NULL::bigint, NULL::jsonb
        FROM tenant t WHERE t.tenant_id = j.tenant_id;
        RETURN;
    END IF;
    balance := balance - expire_lots_v1(j.tenant_id);
    refused := refusing_linked_budget_v1(j.tenant_id, j.job_id, amount);
    IF balance < amount OR (amount > 0 AND refused IS NOT NULL) THEN
        RETURN QUERY SELECT CASE WHEN balance < amount THEN 'insufficient' ELSE 'over_budget' END,
                            amount, balance,
                            CASE WHEN balance < amount THEN jsonb_build_object('required', amount)
                                 ELSE refused END;
        RETURN;
    END IF;
    UPDATE hold SET ceiling = p_ceiling WHERE tenant_id = j.tenant_id AND hold_id = j.job_id;
    PERFORM grow_hold_v1(j.tenant_id, j.job_id, amount);
    RETURN QUERY SELECT 'extended', amount, balance - amount, NULL::jsonb;
END
$$;

-- A further tranche of a hold: its credits, its budgets, its notices. The caller has locked the hold
-- and the account, and has asked for refusals.
CREATE OR REPLACE FUNCTION grow_hold_v1(p_tenant uuid, p_hold uuid, p_amount bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    growth integer;
BEGIN
    IF p_amount = 0 THEN
        RETURN;
    END IF;
    UPDATE hold SET reserved = reserved + p_amount, top_ups = top_ups + 1
    WHERE tenant_id = p_tenant AND hold_id = p_hold RETURNING top_ups INTO growth;
    PERFORM fund_holds_v1(p_tenant, ARRAY[p_hold], ARRAY[p_amount],
                          ARRAY['reserve:' || p_hold || ':' || growth]);
    UPDATE budget_use u SET committed = u.committed + p_amount FROM hold_budget l
    WHERE l.tenant_id = p_tenant AND l.hold_id = p_hold AND u.tenant_id = l.tenant_id
      AND u.budget_id = l.budget_id AND u.period_start = l.period_start;
    PERFORM tell_low_credits_v1(p_tenant);
    PERFORM tell_low_budgets_v1(p_tenant, p_hold);
END
$$;

-- The tightest of the budgets that a hold counts in which a further amount would overdraw.
CREATE OR REPLACE FUNCTION refusing_linked_budget_v1(p_tenant uuid, p_hold uuid, p_amount bigint)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'budget_id', b.budget_id, 'node', b.node, 'subject', b.subject, 'period', b.period,
        'cap', b.cap, 'used', s.charged, 'held', u.committed - s.charged,
        'required', p_amount, 'resets_at', period_end_v1(b.period, l.period_start))
    FROM hold_budget l JOIN budget b USING (tenant_id, budget_id)
    JOIN budget_use u USING (tenant_id, budget_id, period_start)
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(h.charged), 0)::bigint AS charged
        FROM hold_budget o JOIN hold h USING (tenant_id, hold_id)
        WHERE o.tenant_id = b.tenant_id AND o.budget_id = b.budget_id
          AND o.period_start = l.period_start
    ) AS s
    WHERE l.tenant_id = p_tenant AND l.hold_id = p_hold AND u.committed + p_amount > b.cap
    ORDER BY b.cap - u.committed, b.budget_id
    LIMIT 1
$$;

-- Jobs that wait for credits go on when their next tranche can be paid, or is paid already.
CREATE OR REPLACE FUNCTION resume_funded_v1(p_limit integer, p_tranche_pages integer)
RETURNS TABLE (tenant uuid, job uuid, fault text) LANGUAGE plpgsql AS $$
DECLARE
    waiting record;
BEGIN
    FOR waiting IN
        SELECT j.tenant_id, j.job_id FROM job j
        JOIN hold h ON h.tenant_id = j.tenant_id AND h.hold_id = j.job_id
        JOIN account a ON a.tenant_id = j.tenant_id
        JOIN tenant t ON t.tenant_id = j.tenant_id AND t.status = 'active' AND t.frozen_at IS NULL
        CROSS JOIN LATERAL (SELECT dearest_price_v1(j.prices) AS price) AS p
        CROSS JOIN LATERAL (
            SELECT least(p_tranche_pages * p.price, h.ceiling - h.reserved) AS amount) AS next
        WHERE j.state = 'paused' AND j.pause_reason = 'budget'
          AND (h.reserved - h.charged - h.released >= p.price
               OR (next.amount > 0 AND a.available >= next.amount
                   AND refusing_linked_budget_v1(j.tenant_id, j.job_id, next.amount) IS NULL))
        ORDER BY j.paused_at LIMIT p_limit FOR NO KEY UPDATE OF j SKIP LOCKED
    LOOP
        tenant := waiting.tenant_id;
        job := waiting.job_id;
        fault := NULL;
        BEGIN
            PERFORM resume_job_v1(tenant, job);
        EXCEPTION WHEN OTHERS THEN
            fault := sqlerrm;
        END;
        RETURN NEXT;
    END LOOP;
END
$$;
