-- Disputes: a customer contests charged pages, an operator decides; every step is a new row.
-- Every function here locks the account first, so that twins wait and then read the winner.

-- Opens a dispute over charged pages with what is stored of them; a page is in one open dispute
-- at most.
CREATE OR REPLACE FUNCTION open_dispute_v1(
    p_tenant uuid, p_dispute uuid, p_job uuid, p_pages integer[], p_reason text, p_actor text
) RETURNS TABLE (outcome text, told jsonb) LANGUAGE plpgsql AS $$
DECLARE
    weighed record;
    known jsonb;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    PERFORM 1 FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM dispute WHERE tenant_id = p_tenant AND dispute_id = p_dispute) THEN
        RETURN QUERY SELECT 'opened', NULL::jsonb;
        RETURN;
    ELSIF NOT EXISTS (SELECT FROM job WHERE tenant_id = p_tenant AND job_id = p_job) THEN
        RETURN QUERY SELECT 'no_job', NULL::jsonb;
        RETURN;
    END IF;
    SELECT * INTO weighed FROM weigh_refund_v1(p_tenant, p_job, p_pages, NULL);
    SELECT jsonb_build_object('pages', jsonb_agg(c.page_no ORDER BY c.page_no),
                              'dispute_id', min(c.dispute_id::text)) INTO known
    FROM contested_pages_v1(p_tenant, p_job) AS c WHERE c.page_no = ANY (p_pages) HAVING count(*) > 0;
    IF weighed.fault IS NOT NULL OR known IS NOT NULL THEN
        RETURN QUERY SELECT coalesce(weighed.fault, 'under_dispute'),
                            CASE WHEN weighed.fault IS NULL THEN known ELSE weighed.told END;
        RETURN;
    END IF;
    INSERT INTO dispute (tenant_id, dispute_id, job_id, reason, opened_by)
    VALUES (p_tenant, p_dispute, p_job, p_reason, p_actor);
    INSERT INTO dispute_page (tenant_id, dispute_id, job_id, page_no, evidence)
    SELECT p_tenant, p_dispute, p_job, p.page_no, jsonb_build_object(
        'url', p.url, 'final_url', p.final_url, 'status', p.state, 'http_status', p.http_status,
        'content_type', p.content_type, 'content_hash', encode(p.content_hash, 'hex'),
        'bytes', p.bytes, 'title', p.title, 'fetched_at', p.fetched_at, 'credits', p.credits,
        'entry_id', p.transfer_id)
    FROM page p WHERE p.tenant_id = p_tenant AND p.job_id = p_job AND p.page_no = ANY (p_pages);
    RETURN QUERY SELECT 'opened', NULL::jsonb;
END
$$;

CREATE OR REPLACE FUNCTION contested_pages_v1(p_tenant uuid, p_job uuid)
RETURNS TABLE (dispute_id uuid, page_no integer) LANGUAGE sql STABLE AS $$
    SELECT d.dispute_id, d.page_no FROM dispute_page d
    WHERE d.tenant_id = p_tenant AND d.job_id = p_job AND NOT EXISTS (
        SELECT FROM dispute_decision x
        WHERE x.tenant_id = p_tenant AND x.dispute_id = d.dispute_id)
$$;

-- The decision of a correction's dispute, once its refund is made; nothing for other corrections.
CREATE OR REPLACE FUNCTION accept_dispute_v1(c correction) RETURNS void LANGUAGE sql AS $$
    INSERT INTO dispute_decision (tenant_id, dispute_id, decision, reason, decided_by, correction_id)
    SELECT c.tenant_id, c.dispute_id, 'accepted', c.reason, c.requested_by, c.correction_id
    WHERE c.dispute_id IS NOT NULL
$$;

-- Accepting refunds the pages that were not refunded yet, in the same transaction; above the limit
-- the refund waits for another key, and the dispute stays open until then.
CREATE OR REPLACE FUNCTION decide_dispute_v1(
    p_tenant uuid, p_dispute uuid, p_decision text, p_reason text, p_actor text,
    p_correction uuid, p_limit bigint
) RETURNS TABLE (outcome text, told jsonb) LANGUAGE plpgsql AS $$
DECLARE
    known text;
    waiting uuid;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    PERFORM 1 FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    IF NOT EXISTS (SELECT FROM dispute WHERE tenant_id = p_tenant AND dispute_id = p_dispute) THEN
        RETURN QUERY SELECT 'not_found', NULL::jsonb;
        RETURN;
    END IF;
    SELECT decision INTO known FROM dispute_decision
    WHERE tenant_id = p_tenant AND dispute_id = p_dispute;
    SELECT correction_id INTO waiting FROM correction
    WHERE tenant_id = p_tenant AND dispute_id = p_dispute AND state = 'pending';
    IF known IS NOT NULL THEN
        RETURN QUERY SELECT CASE WHEN known = p_decision THEN 'replayed' ELSE 'decided' END,
                            jsonb_build_object('state', known);
    ELSIF waiting IS NOT NULL THEN
        RETURN QUERY SELECT CASE WHEN p_decision = 'accepted' THEN 'replayed' ELSE 'waiting' END,
                            jsonb_build_object('correction_id', waiting);
    ELSIF p_decision = 'accepted' THEN
        RETURN QUERY SELECT refund_dispute_v1(
            p_tenant, p_dispute, p_reason, p_actor, p_correction, p_limit), NULL::jsonb;
    ELSE
        INSERT INTO dispute_decision (tenant_id, dispute_id, decision, reason, decided_by)
        VALUES (p_tenant, p_dispute, p_decision, p_reason, p_actor);
        RETURN QUERY SELECT p_decision, NULL::jsonb;
    END IF;
END
$$;

-- Refunds what is left to refund of a dispute's pages. The caller has locked the account.
CREATE OR REPLACE FUNCTION refund_dispute_v1(
    p_tenant uuid, p_dispute uuid, p_reason text, p_actor text, p_correction uuid, p_limit bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    c correction;
BEGIN
    SELECT min(d.job_id::text)::uuid, array_agg(d.page_no ORDER BY d.page_no), sum(p.credits)
    INTO c.job_id, c.page_nos, c.amount
    FROM dispute_page d JOIN page p USING (tenant_id, job_id, page_no)
    WHERE d.tenant_id = p_tenant AND d.dispute_id = p_dispute AND NOT EXISTS (
        SELECT FROM page_refund r
        WHERE r.tenant_id = p_tenant AND r.job_id = d.job_id AND r.page_no = d.page_no);
    IF c.page_nos IS NULL THEN
        INSERT INTO dispute_decision (tenant_id, dispute_id, decision, reason, decided_by)
        VALUES (p_tenant, p_dispute, 'accepted', p_reason, p_actor);
        RETURN 'accepted';
    END IF;
    c.tenant_id := p_tenant;
    c.correction_id := p_correction;
    c.kind := 'refund';
    c.reason := p_reason;
    c.dispute_id := p_dispute;
    c.requested_by := p_actor;
    IF book_correction_v1(c, p_limit) = 'pending' THEN
        RETURN 'pending';
    END IF;
    PERFORM accept_dispute_v1(c);
    RETURN 'accepted';
END
$$;
