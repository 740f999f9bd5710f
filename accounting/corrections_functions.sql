-- Corrections: credits that an operator moves, each with a reason and the key that asked for it.
-- Every function here locks the account first, so that twins wait and then read the winner.

-- What a refund of these pages comes to, or the first fault with the pages that have it.
CREATE OR REPLACE FUNCTION weigh_refund_v1(
    p_tenant uuid, p_job uuid, p_pages integer[], p_credits bigint
) RETURNS TABLE (fault text, told jsonb, total bigint) LANGUAGE sql STABLE AS $$
    SELECT judged.fault, jsonb_build_object('pages', jsonb_agg(judged.page_no ORDER BY judged.page_no)),
           sum(judged.amount)::bigint
    FROM (
        SELECT w.page_no, coalesce(p_credits, p.credits) AS amount,
               CASE WHEN p.page_no IS NULL THEN 'unknown_page'
                    WHEN p.credits = 0 THEN 'not_charged'
                    WHEN r.page_no IS NOT NULL THEN 'refunded'
                    WHEN p_credits > p.credits THEN 'too_much' END AS fault
        FROM unnest(p_pages) AS w (page_no)
        LEFT JOIN page p
            ON p.tenant_id = p_tenant AND p.job_id = p_job AND p.page_no = w.page_no
        LEFT JOIN page_refund r
            ON r.tenant_id = p_tenant AND r.job_id = p_job AND r.page_no = w.page_no
    ) AS judged
    GROUP BY judged.fault ORDER BY judged.fault NULLS LAST LIMIT 1
$$;

-- Whether a correction can be made now, and its amount. The caller has locked the account.
CREATE OR REPLACE FUNCTION weigh_correction_v1(c correction)
RETURNS TABLE (fault text, told jsonb, total bigint) LANGUAGE plpgsql AS $$
DECLARE
    balance bigint;
BEGIN
    IF c.kind = 'refund' THEN
        RETURN QUERY SELECT w.fault, w.told, w.total
            FROM weigh_refund_v1(c.tenant_id, c.job_id, c.page_nos, c.page_credits) AS w;
        RETURN;
    ELSIF c.kind = 'adjust_out' THEN
        -- credits that have expired are gone already and must not count
        PERFORM expire_lots_v1(c.tenant_id);
        SELECT available INTO balance FROM account WHERE tenant_id = c.tenant_id;
        IF balance < c.amount THEN
            RETURN QUERY SELECT 'insufficient',
                jsonb_build_object('required', c.amount, 'available', balance), c.amount;
            RETURN;
        END IF;
    END IF;
    RETURN QUERY SELECT NULL::text, NULL::jsonb, c.amount;
END
$$;

-- Takes credits out of the lots that were given last: an adjustment mostly takes back what was
-- given by mistake, and what the customer had before it stays as it was.
CREATE OR REPLACE FUNCTION adjust_out_v1(c correction, p_meta jsonb)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    source lot;
    needed bigint := c.amount;
    taken bigint;
    parts jsonb := '[]';
    id bigint;
BEGIN
    UPDATE account SET available = available - c.amount, version = version + 1
    WHERE tenant_id = c.tenant_id;
    FOR source IN
        SELECT * FROM lot WHERE tenant_id = c.tenant_id AND NOT exhausted
        ORDER BY created_at DESC, lot_id DESC FOR NO KEY UPDATE
    LOOP
        EXIT WHEN needed = 0;
        taken := least(needed, source.remaining);
        UPDATE lot SET remaining = remaining - taken, exhausted = (remaining = taken)
        WHERE tenant_id = c.tenant_id AND lot_id = source.lot_id;
        parts := parts || jsonb_build_object('lot_id', source.lot_id, 'amount', taken);
        needed := needed - taken;
    END LOOP;
    IF needed <> 0 THEN
        RAISE EXCEPTION 'the lots of tenant % do not sum to its balance', c.tenant_id
            USING ERRCODE = 'PT500';
    END IF;
    INSERT INTO transfer (tenant_id, kind, debit, credit, amount, op_key, meta)
    VALUES (c.tenant_id, 'adjust_out', 'available', 'issued', c.amount,
            'adjust_out:' || c.correction_id, p_meta || jsonb_build_object('lots', parts))
    RETURNING transfer_id INTO id;
    RETURN id;
END
$$;

-- Gives credits in a lot of their own, which bears the correction's id.
CREATE OR REPLACE FUNCTION adjust_in_v1(c correction, p_meta jsonb)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    id bigint;
    given text;
BEGIN
    SELECT g.outcome INTO given FROM grant_v1(
        c.tenant_id, c.correction_id, c.amount, 'adjust', 'adjust:' || c.correction_id, NULL,
        50::smallint, p_meta) AS g;
    IF given <> 'granted' THEN
        RAISE EXCEPTION 'adjustment % was not given: %', c.correction_id, given
            USING ERRCODE = 'PT500';
    END IF;
    SELECT transfer_id INTO id FROM transfer
    WHERE tenant_id = c.tenant_id AND op_key = 'grant:adjust:' || c.correction_id;
    RETURN id;
END
$$;

-- Gives back what pages were charged, in a lot that never expires; the key of page_refund makes it
-- once for each page.
CREATE OR REPLACE FUNCTION refund_pages_v1(c correction, p_meta jsonb)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    id bigint;
    given bigint;
BEGIN
    INSERT INTO lot (tenant_id, lot_id, source, amount, remaining, op_key)
    VALUES (c.tenant_id, c.correction_id, 'refund', c.amount, c.amount,
            'refund:' || c.correction_id);
    INSERT INTO transfer (tenant_id, kind, debit, credit, amount, hold_id, lot_id, op_key, meta)
    VALUES (c.tenant_id, 'refund', 'charged', 'available', c.amount, c.job_id, c.correction_id,
            'refund:' || c.correction_id, p_meta || jsonb_build_object('pages', c.page_nos))
    RETURNING transfer_id INTO id;
    WITH given_back AS (
        INSERT INTO page_refund (tenant_id, job_id, page_no, transfer_id, amount, reason, actor)
        SELECT p.tenant_id, p.job_id, p.page_no, id, coalesce(c.page_credits, p.credits), c.reason,
               c.requested_by
        FROM page p
        WHERE p.tenant_id = c.tenant_id AND p.job_id = c.job_id AND p.page_no = ANY (c.page_nos)
        RETURNING amount
    )
    SELECT sum(amount) INTO given FROM given_back;
    IF given IS DISTINCT FROM c.amount THEN
        RAISE EXCEPTION 'refund % of % gives %', c.correction_id, c.amount, given
            USING ERRCODE = 'PT500';
    END IF;
    UPDATE account SET available = available + c.amount, version = version + 1
    WHERE tenant_id = c.tenant_id;
    RETURN id;
END
$$;

-- Makes the entry of a correction. The caller has locked the account and weighed the correction.
CREATE OR REPLACE FUNCTION apply_correction_v1(c correction) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    meta jsonb := jsonb_strip_nulls(jsonb_build_object(
        'correction_id', c.correction_id, 'reason', c.reason, 'actor', c.requested_by,
        'approved_by', c.approved_by, 'dispute_id', c.dispute_id));
BEGIN
    RETURN CASE c.kind
        WHEN 'refund' THEN refund_pages_v1(c, meta)
        WHEN 'adjust_in' THEN adjust_in_v1(c, meta)
        ELSE adjust_out_v1(c, meta) END;
END
$$;

-- Writes a new correction: made at once up to the limit, else waiting. Gives its state.
CREATE OR REPLACE FUNCTION book_correction_v1(p_wanted correction, p_limit bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c correction := p_wanted;
BEGIN
    c.requested_at := now();
    c.needs_approval := c.amount > p_limit;
    c.state := 'pending';
    IF NOT c.needs_approval THEN
        c.state := 'done';
        c.decided_at := now();
        c.transfer_id := apply_correction_v1(c);
    END IF;
    INSERT INTO correction SELECT c.*;
    RETURN c.state;
END
$$;

-- A refund or an adjustment is asked for: made, waiting, an earlier one again, or refused with
-- nothing moved and nothing remembered.
CREATE OR REPLACE FUNCTION request_correction_v1(p_tenant uuid, p_wanted jsonb, p_limit bigint)
RETURNS TABLE (outcome text, found_correction uuid, told jsonb) LANGUAGE plpgsql AS $$
DECLARE
    wanted correction := jsonb_populate_record(NULL::correction, p_wanted);
    known correction;
    weighed record;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    wanted.tenant_id := p_tenant;
    PERFORM 1 FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'no_tenant', NULL::uuid, NULL::jsonb;
        RETURN;
    END IF;
    SELECT * INTO known FROM correction WHERE tenant_id = p_tenant AND op_key = wanted.op_key;
    IF FOUND THEN
        RETURN QUERY SELECT CASE
            WHEN known.correction_id = wanted.correction_id THEN known.state
            WHEN known.kind = wanted.kind AND known.reason = wanted.reason
                AND known.amount = coalesce(wanted.amount, known.amount)
                AND (known.job_id, known.page_nos, known.page_credits) IS NOT DISTINCT FROM
                    (wanted.job_id, wanted.page_nos, wanted.page_credits) THEN 'replayed'
            ELSE 'conflict' END, known.correction_id, NULL::jsonb;
        RETURN;
    ELSIF wanted.kind = 'refund' AND NOT EXISTS (
            SELECT FROM job WHERE tenant_id = p_tenant AND job_id = wanted.job_id) THEN
        RETURN QUERY SELECT 'no_job', NULL::uuid, NULL::jsonb;
        RETURN;
    END IF;
    SELECT * INTO weighed FROM weigh_correction_v1(wanted);
    IF weighed.fault IS NOT NULL THEN
        RETURN QUERY SELECT weighed.fault, NULL::uuid, weighed.told;
        RETURN;
    END IF;
    wanted.amount := weighed.total;
    RETURN QUERY SELECT book_correction_v1(wanted, p_limit), wanted.correction_id, NULL::jsonb;
END
$$;

-- The second person: approves, and then the credits move, or refuses. Who asked cannot approve.
-- What has become impossible meanwhile is told and goes on waiting.
CREATE OR REPLACE FUNCTION decide_correction_v1(
    p_tenant uuid, p_correction uuid, p_actor text, p_refusal text
) RETURNS TABLE (outcome text, told jsonb) LANGUAGE plpgsql AS $$
DECLARE
    c correction;
    weighed record;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    PERFORM 1 FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    SELECT * INTO c FROM correction
    WHERE tenant_id = p_tenant AND correction_id = p_correction FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'not_found', NULL::jsonb;
    ELSIF p_refusal IS NULL AND c.requested_by = p_actor THEN
        RETURN QUERY SELECT 'own', NULL::jsonb;
    ELSIF c.state <> 'pending' THEN
        RETURN QUERY SELECT CASE WHEN (c.state = 'refused') = (p_refusal IS NOT NULL)
            THEN 'replayed' ELSE 'decided' END, jsonb_build_object('state', c.state);
    ELSIF p_refusal IS NOT NULL THEN
        UPDATE correction SET state = 'refused', refused_by = p_actor, refusal = p_refusal,
                              decided_at = now()
        WHERE tenant_id = p_tenant AND correction_id = p_correction;
        RETURN QUERY SELECT 'refused', NULL::jsonb;
    ELSE
        SELECT * INTO weighed FROM weigh_correction_v1(c);
        IF weighed.fault IS NULL THEN
            c.approved_by := p_actor;
            c.transfer_id := apply_correction_v1(c);
            UPDATE correction SET state = 'done', approved_by = p_actor, decided_at = now(),
                                  transfer_id = c.transfer_id
            WHERE tenant_id = p_tenant AND correction_id = p_correction;
            PERFORM accept_dispute_v1(c);
        END IF;
        RETURN QUERY SELECT coalesce(weighed.fault, 'done'), weighed.told;
    END IF;
END
$$;
