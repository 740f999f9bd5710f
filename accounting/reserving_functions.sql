-- How jobs and their holds begin. Submits of one tenant that come together are reserved together: its
-- account is locked once for all of them, and each statement writes the rows of all.

-- Of each of `p_items`, in order: the replay of an earlier submit, or the job, its hold over the
-- tenant's lots, the reserve transfer and the seed URLs; or a refusal that has moved nothing. What one
-- is given is gone for the next: credits that are not enough for all go to those who came first.
-- The account's lock makes the twin of a submit wait here and then read the winner.
-- An item has the `job`, its `seeds`, the `credits` of its first tranche and its `ceiling`.
CREATE OR REPLACE FUNCTION reserve_group_v1(p_tenant uuid, p_items jsonb)
RETURNS TABLE (outcome text, found_job uuid, available_credits bigint, refusal jsonb)
LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    item jsonb;
    wanted job;
    told record;
    accepted jsonb := '[]';
    capped boolean;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    SELECT a.available INTO available_credits FROM account a JOIN tenant t USING (tenant_id)
    WHERE a.tenant_id = p_tenant AND t.status = 'active' AND t.frozen_at IS NULL
    FOR NO KEY UPDATE OF a;
    IF NOT FOUND THEN
        RETURN QUERY SELECT CASE WHEN t.status = 'active' THEN 'frozen' ELSE 'suspended' END,
                            NULL::uuid, NULL::bigint, NULL::jsonb
        FROM tenant t CROSS JOIN jsonb_array_elements(p_items) WHERE t.tenant_id = p_tenant;
        RETURN;
    END IF;
    capped := EXISTS (SELECT FROM budget b WHERE b.tenant_id = p_tenant);
    FOR item IN SELECT i.value FROM jsonb_array_elements(p_items) AS i LOOP
        wanted := jsonb_populate_record(NULL::job, item -> 'job');
        told := earlier_submit_v1(p_tenant, wanted, accepted);
        IF told.outcome IS NULL THEN
            available_credits := available_credits - expire_lots_v1(p_tenant);
            told := judge_submit_v1(p_tenant, wanted, item, available_credits, capped);
        END IF;
        outcome := coalesce(told.outcome, 'created');
        found_job := coalesce(told.found_job, CASE WHEN told.outcome IS NULL THEN wanted.job_id END);
        refusal := told.refusal;
        IF told.outcome IS NULL THEN
            available_credits := available_credits - (item ->> 'credits')::bigint;
            accepted := accepted || item;
            -- Where there are caps, the next one must find this one in them.
            IF capped THEN
                PERFORM open_jobs_v1(p_tenant, accepted);
                PERFORM commit_budgets_v1(p_tenant, wanted.job_id, wanted.key_id, wanted.tags,
                                          (item ->> 'credits')::bigint);
                accepted := '[]';
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
    PERFORM open_jobs_v1(p_tenant, accepted);
END
$$;

-- What an earlier submit of the same job, or by the same idempotency key, has come to. It may be of
-- the same group, and accepted a moment ago.
CREATE OR REPLACE FUNCTION earlier_submit_v1(
    p_tenant uuid, p_wanted job, p_accepted jsonb,
    OUT outcome text, OUT found_job uuid, OUT refusal jsonb
) LANGUAGE plpgsql AS $$
DECLARE
    key text := p_wanted.idempotency_key;
    request bytea;
BEGIN
    SELECT j.job_id, 'created' INTO found_job, outcome FROM job j
    WHERE j.tenant_id = p_tenant AND j.job_id = p_wanted.job_id;
    IF FOUND OR key IS NULL THEN
        RETURN;
    END IF;
    SELECT j.job_id, j.request_hash INTO found_job, request FROM job j
    WHERE j.tenant_id = p_tenant AND j.idempotency_key = key;
    IF NOT FOUND THEN
        SELECT r.job_id, r.request_hash INTO found_job, request
        FROM jsonb_array_elements(p_accepted) AS i
        CROSS JOIN jsonb_populate_record(NULL::job, i.value -> 'job') AS r
        WHERE r.idempotency_key = key;
    END IF;
    IF found_job IS NOT NULL THEN
        outcome := CASE WHEN request = p_wanted.request_hash THEN 'replayed' ELSE 'conflict' END;
    END IF;
END
$$;

-- Why a job may not begin now, and the cap that says so; nothing where it may.
CREATE OR REPLACE FUNCTION judge_submit_v1(
    p_tenant uuid, p_wanted job, p_item jsonb, p_balance bigint, p_capped boolean,
    OUT outcome text, OUT found_job uuid, OUT refusal jsonb
) LANGUAGE plpgsql AS $$
DECLARE
    credits bigint := p_item ->> 'credits';
    most bigint := p_item ->> 'ceiling';
BEGIN
    IF p_wanted.quote_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM quote q WHERE q.tenant_id = p_tenant AND q.quote_id = p_wanted.quote_id
            AND q.expires_at > now() AND q.prices = p_wanted.prices AND q.ceiling >= most) THEN
        outcome := 'quote_expired';
    ELSIF p_balance < credits THEN
        outcome := 'insufficient';
    ELSIF p_capped THEN
        refusal := refusing_budget_v1(p_tenant, p_wanted.key_id, p_wanted.tags, credits);
        outcome := CASE WHEN refusal IS NOT NULL THEN 'over_budget' END;
    END IF;
END
$$;

-- Accepted submits become rows: holds, their credits, jobs and seed URLs. The caller has
-- locked the account.
CREATE OR REPLACE FUNCTION open_jobs_v1(p_tenant uuid, p_items jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted record;
BEGIN
    IF p_items = '[]' THEN
        RETURN;
    END IF;
    SELECT array_agg(i.job ->> 'job_id')::uuid[] AS holds, array_agg(i.credits) AS credits,
           array_agg(i.ceiling) AS ceilings, array_agg('reserve:' || (i.job ->> 'job_id')) AS op_keys
    INTO wanted FROM jsonb_to_recordset(p_items) AS i (job jsonb, credits bigint, ceiling bigint);
    INSERT INTO hold (tenant_id, hold_id, reserved, ceiling)
    SELECT p_tenant, w.hold, w.credits, w.ceiling
    FROM unnest(wanted.holds, wanted.credits, wanted.ceilings) AS w (hold, credits, ceiling);
    PERFORM fund_holds_v1(p_tenant, wanted.holds, wanted.credits, wanted.op_keys);
    PERFORM tell_low_credits_v1(p_tenant);
    PERFORM insert_jobs_v1(p_tenant, p_items);
END
$$;

-- Binds credits to holds, in order and soonest-expiring lots first: out of the balance, out of the
-- lots. For new holds and for further tranches of old ones; the caller has locked the account.
CREATE OR REPLACE FUNCTION fund_holds_v1(
    p_tenant uuid, p_holds uuid[], p_amounts bigint[], p_op_keys text[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    total bigint := (SELECT sum(amount) FROM unnest(p_amounts) AS amount);
    source lot;
    this integer := 1;
    needed bigint := p_amounts[1];
    taken bigint;
    parts jsonb := '[]';
BEGIN
    IF total = 0 THEN
        RETURN;
    END IF;
    UPDATE account SET available = available - total, version = version + 1
    WHERE tenant_id = p_tenant AND available >= total;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'reserve of % exceeds the balance', total USING ERRCODE = 'PT402';
    END IF;
    FOR source IN
        SELECT * FROM lot WHERE tenant_id = p_tenant AND NOT exhausted
        ORDER BY expires_at NULLS LAST, priority, lot_id FOR NO KEY UPDATE
    LOOP
        WHILE this <= cardinality(p_holds) AND (source.remaining > 0 OR needed = 0) LOOP
            taken := least(needed, source.remaining);
            parts := parts || jsonb_build_object(
                'hold', p_holds[this], 'lot', source.lot_id, 'taken', taken);
            source.remaining := source.remaining - taken;
            needed := needed - taken;
            IF needed = 0 THEN
                this := this + 1;
                needed := p_amounts[this];
            END IF;
        END LOOP;
        UPDATE lot SET remaining = source.remaining, exhausted = (source.remaining = 0)
        WHERE tenant_id = p_tenant AND lot_id = source.lot_id;
        EXIT WHEN this > cardinality(p_holds);
    END LOOP;
    IF this <= cardinality(p_holds) THEN
        RAISE EXCEPTION 'the lots of tenant % do not sum to its balance', p_tenant
            USING ERRCODE = 'PT500';
    END IF;
    PERFORM record_funding_v1(p_tenant, parts);
    INSERT INTO transfer (tenant_id, kind, debit, credit, amount, hold_id, op_key)
    SELECT p_tenant, 'reserve', 'available', 'held', w.amount, w.hold, w.op_key
    FROM unnest(p_holds, p_amounts, p_op_keys) AS w (hold, amount, op_key) WHERE w.amount > 0;
END
$$;

-- Which lots fund a hold, and with how much each, after what has funded it before.
CREATE OR REPLACE FUNCTION record_funding_v1(p_tenant uuid, p_parts jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO hold_allocation (tenant_id, hold_id, position, lot_id, reserved)
    SELECT p_tenant, p.hold, row_number() OVER (PARTITION BY p.hold ORDER BY p.place)
               + coalesce((SELECT max(a.position) FROM hold_allocation a
                           WHERE a.tenant_id = p_tenant AND a.hold_id = p.hold), 0), p.lot, p.taken
    FROM ROWS FROM (jsonb_to_recordset(p_parts) AS (hold uuid, lot uuid, taken bigint))
        WITH ORDINALITY AS p (hold, lot, taken, place)
    WHERE p.taken > 0;
END
$$;
