-- Caps on what a tenant, a key or a tag commits; all of it under the account's lock, so that no two
-- submits overshoot a cap together. committed = reserved - released: charges do not touch it.

-- The start of the period that a moment belongs to, in UTC; a total has one period for ever.
CREATE OR REPLACE FUNCTION period_start_v1(p_period text, p_moment timestamptz)
RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_period WHEN 'total' THEN timestamptz '2000-01-01 00:00+00'
                         ELSE date_trunc(p_period, p_moment, 'UTC') END
$$;

CREATE OR REPLACE FUNCTION period_end_v1(p_period text, p_start timestamptz)
RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_period WHEN 'day' THEN p_start + interval '1 day'
                         WHEN 'month' THEN (p_start AT TIME ZONE 'UTC' + interval '1 month')
                                           AT TIME ZONE 'UTC' END
$$;

-- The budgets that count for work of this key with these tags.
CREATE OR REPLACE FUNCTION matching_budgets_v1(p_tenant uuid, p_key text, p_tags text[])
RETURNS SETOF budget LANGUAGE sql STABLE AS $$
    SELECT * FROM budget WHERE tenant_id = p_tenant AND (
        node = 'tenant' OR (node = 'key' AND subject = p_key)
        OR (node = 'tag' AND subject = ANY(p_tags)))
    ORDER BY budget_id
$$;

-- Why a commitment is refused: the tightest budget that it would overdraw; NULL where none is.
CREATE OR REPLACE FUNCTION refusing_budget_v1(
    p_tenant uuid, p_key text, p_tags text[], p_amount bigint
) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'budget_id', b.budget_id, 'node', b.node, 'subject', b.subject, 'period', b.period,
        'cap', b.cap, 'used', s.charged, 'held', coalesce(u.committed, 0) - s.charged,
        'required', p_amount, 'resets_at', period_end_v1(b.period, start.at))
    FROM matching_budgets_v1(p_tenant, p_key, p_tags) AS b
    CROSS JOIN LATERAL (SELECT period_start_v1(b.period, now()) AS at) AS start
    LEFT JOIN budget_use u ON u.tenant_id = b.tenant_id AND u.budget_id = b.budget_id
        AND u.period_start = start.at
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(h.charged), 0)::bigint AS charged
        FROM hold_budget l JOIN hold h USING (tenant_id, hold_id)
        WHERE l.tenant_id = b.tenant_id AND l.budget_id = b.budget_id AND l.period_start = start.at
    ) AS s
    WHERE coalesce(u.committed, 0) + p_amount > b.cap
    ORDER BY b.cap - coalesce(u.committed, 0), b.budget_id
    LIMIT 1
$$;

-- Counts a new hold in every budget that matches; the caller has asked for refusals.
CREATE OR REPLACE FUNCTION commit_budgets_v1(
    p_tenant uuid, p_hold uuid, p_key text, p_tags text[], p_amount bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO budget_use AS u (tenant_id, budget_id, period_start, committed)
    SELECT p_tenant, b.budget_id, period_start_v1(b.period, now()), p_amount
    FROM matching_budgets_v1(p_tenant, p_key, p_tags) AS b
    ON CONFLICT (tenant_id, budget_id, period_start)
        DO UPDATE SET committed = u.committed + excluded.committed;
    INSERT INTO hold_budget (tenant_id, hold_id, budget_id, period_start)
    SELECT p_tenant, p_hold, b.budget_id, period_start_v1(b.period, now())
    FROM matching_budgets_v1(p_tenant, p_key, p_tags) AS b;
    PERFORM tell_low_budgets_v1(p_tenant, p_hold);
END
$$;

-- What a hold gives back counts in its budgets no more, in the period that it was reserved in.
CREATE OR REPLACE FUNCTION uncommit_budgets_v1(p_tenant uuid, p_hold uuid, p_amount bigint)
RETURNS void LANGUAGE sql AS $$
    UPDATE budget_use u SET committed = u.committed - p_amount,
        told_low = u.told_low AND (u.committed - p_amount) * 5 >= b.cap * 4
    FROM hold_budget l JOIN budget b USING (tenant_id, budget_id)
    WHERE l.tenant_id = p_tenant AND l.hold_id = p_hold AND u.tenant_id = l.tenant_id
      AND u.budget_id = l.budget_id AND u.period_start = l.period_start
$$;

-- Four fifths of a cap are committed: the tenant is told once a period.
CREATE OR REPLACE FUNCTION tell_low_budgets_v1(p_tenant uuid, p_hold uuid)
RETURNS void LANGUAGE sql AS $$
    WITH low AS (
        UPDATE budget_use u SET told_low = true
        FROM hold_budget l JOIN budget b USING (tenant_id, budget_id)
        WHERE l.tenant_id = p_tenant AND l.hold_id = p_hold AND u.tenant_id = l.tenant_id
          AND u.budget_id = l.budget_id AND u.period_start = l.period_start
          AND NOT u.told_low AND u.committed * 5 >= b.cap * 4
        RETURNING b.budget_id, b.node, b.subject, b.period, b.cap, u.committed
    )
    INSERT INTO notice (tenant_id, kind, detail)
    SELECT p_tenant, 'budget.low', to_jsonb(low) FROM low
$$;

-- Sets a cap. A new one counts at once what its period's jobs have committed so far.
CREATE OR REPLACE FUNCTION put_budget_v1(
    p_tenant uuid, p_budget uuid, p_node text, p_subject text, p_period text, p_cap bigint
) RETURNS SETOF budget LANGUAGE plpgsql AS $$
DECLARE
    made budget;
BEGIN
    PERFORM enter_tenant_v1(p_tenant);
    PERFORM 1 FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;
    INSERT INTO budget AS b (tenant_id, budget_id, node, subject, period, cap)
    VALUES (p_tenant, p_budget, p_node, p_subject, p_period, p_cap)
    ON CONFLICT (tenant_id, node, subject, period) DO UPDATE SET cap = excluded.cap
    RETURNING b.* INTO made;
    IF made.budget_id = p_budget THEN
        PERFORM count_earlier_holds_v1(made);
    END IF;
    RETURN NEXT made;
END
$$;

CREATE OR REPLACE FUNCTION count_earlier_holds_v1(p_made budget) RETURNS void LANGUAGE sql AS $$
    WITH counted AS MATERIALIZED (
        SELECT h.hold_id, period_start_v1(p_made.period, h.opened_at) AS start,
               h.reserved - h.released AS amount
        FROM hold h JOIN job j ON j.tenant_id = h.tenant_id AND j.job_id = h.hold_id
        WHERE h.tenant_id = p_made.tenant_id AND (p_made.node = 'tenant'
            OR (p_made.node = 'key' AND j.key_id = p_made.subject)
            OR (p_made.node = 'tag' AND p_made.subject = ANY(j.tags)))
          AND (h.state = 'open' OR h.opened_at >= period_start_v1(p_made.period, now()))
    ), used AS (
        INSERT INTO budget_use (tenant_id, budget_id, period_start, committed)
        SELECT p_made.tenant_id, p_made.budget_id, start, sum(amount) FROM counted GROUP BY start
        RETURNING 1
    )
    INSERT INTO hold_budget (tenant_id, hold_id, budget_id, period_start)
    SELECT p_made.tenant_id, hold_id, p_made.budget_id, start FROM counted
    WHERE (SELECT count(*) FROM used) >= 0
$$;
