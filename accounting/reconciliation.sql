-- name: accounts_sum_to_zero()
-- Every transfer debits what it credits, so all accounts of a tenant sum to nothing.
SELECT tenant_id, NULL::text AS subject, sum(amount)::text AS detail
FROM (SELECT tenant_id, amount FROM transfer WHERE credit <> debit
      UNION ALL SELECT tenant_id, -amount FROM transfer WHERE credit <> debit) AS postings
GROUP BY tenant_id HAVING sum(amount) <> 0;

-- name: available_is_the_ledgers()
-- The one materialised balance equals the entries.
SELECT a.tenant_id, NULL::text AS subject,
       format('balance %s, entries %s', a.available, coalesce(e.total, 0)) AS detail
FROM account a LEFT JOIN (
    SELECT tenant_id, sum(CASE WHEN credit = 'available' THEN amount ELSE -amount END) AS total
    FROM transfer WHERE 'available' IN (credit, debit) GROUP BY tenant_id) AS e USING (tenant_id)
WHERE a.available <> coalesce(e.total, 0);

-- name: available_is_in_lots()
SELECT a.tenant_id, NULL::text AS subject,
       format('balance %s, lots %s', a.available, coalesce(l.total, 0)) AS detail
FROM account a LEFT JOIN (
    SELECT tenant_id, sum(remaining) AS total FROM lot GROUP BY tenant_id) AS l USING (tenant_id)
WHERE a.available <> coalesce(l.total, 0);

-- name: held_is_in_open_holds()
SELECT coalesce(e.tenant_id, h.tenant_id) AS tenant_id, NULL::text AS subject,
       format('entries %s, open holds %s', coalesce(e.total, 0), coalesce(h.total, 0)) AS detail
FROM (SELECT tenant_id, sum(CASE WHEN credit = 'held' THEN amount ELSE -amount END) AS total
      FROM transfer WHERE 'held' IN (credit, debit) GROUP BY tenant_id) AS e
FULL JOIN (SELECT tenant_id, sum(reserved - charged - released) AS total
           FROM hold WHERE state = 'open' GROUP BY tenant_id) AS h USING (tenant_id)
WHERE coalesce(e.total, 0) <> coalesce(h.total, 0);

-- name: holds_match_their_entries()
-- What a hold reserved, charged and released is what its entries say.
SELECT h.tenant_id, h.hold_id::text AS subject,
       format('hold %s/%s/%s, entries %s/%s/%s', h.reserved, h.charged, h.released,
              coalesce(e.reserved, 0), coalesce(e.charged, 0), coalesce(e.released, 0)) AS detail
FROM hold h LEFT JOIN (
    SELECT tenant_id, hold_id, sum(amount) FILTER (WHERE kind = 'reserve') AS reserved,
           sum(amount) FILTER (WHERE kind = 'charge') AS charged,
           sum(amount) FILTER (WHERE kind = 'release') AS released
    FROM transfer WHERE hold_id IS NOT NULL GROUP BY tenant_id, hold_id
) AS e USING (tenant_id, hold_id)
WHERE (h.reserved, h.charged, h.released)
    <> (coalesce(e.reserved, 0), coalesce(e.charged, 0), coalesce(e.released, 0));

-- name: holds_match_their_pages()
SELECT h.tenant_id, h.hold_id::text AS subject,
       format('hold charged %s, pages %s', h.charged, coalesce(p.total, 0)) AS detail
FROM hold h LEFT JOIN (
    SELECT tenant_id, job_id, sum(credits * pages) AS total FROM page_sum
    WHERE transfer_id IS NOT NULL GROUP BY tenant_id, job_id
) AS p ON p.tenant_id = h.tenant_id AND p.job_id = h.hold_id
WHERE h.charged <> coalesce(p.total, 0);

-- name: charges_match_their_pages()
-- Each charge is the sum of its hold's pages that name it, and no page names another entry.
SELECT tenant_id, transfer_id::text AS subject,
       format('charge %s, pages %s', coalesce(t.amount, 0), coalesce(p.total, 0)) AS detail
FROM (SELECT tenant_id, hold_id, transfer_id, amount FROM transfer WHERE kind = 'charge') AS t
FULL JOIN (
    SELECT tenant_id, job_id AS hold_id, transfer_id, sum(credits * pages) AS total
    FROM page_sum WHERE transfer_id IS NOT NULL GROUP BY tenant_id, job_id, transfer_id
) AS p USING (tenant_id, hold_id, transfer_id)
WHERE coalesce(t.amount, 0) <> coalesce(p.total, 0);

-- name: successes_cost_their_price()
-- Every page that succeeded cost what its outcome cost when the job was submitted.
SELECT p.tenant_id, p.job_id::text AS subject,
       format('page %s and %s others: %s credits for %s, the price is %s', p.first, p.pages - 1,
              p.credits, p.outcome, j.prices ->> p.outcome) AS detail
FROM page_sum p JOIN job j USING (tenant_id, job_id)
WHERE p.state = 'succeeded' AND p.credits IS DISTINCT FROM (j.prices ->> p.outcome)::bigint;

-- name: budgets_match_their_holds()
-- What a cap's period counts is what its holds have reserved and not released.
SELECT u.tenant_id, u.budget_id::text AS subject,
       format('committed %s, holds %s', u.committed, coalesce(l.total, 0)) AS detail
FROM budget_use u LEFT JOIN (
    SELECT l.tenant_id, l.budget_id, l.period_start, sum(h.reserved - h.released) AS total
    FROM hold_budget l JOIN hold h USING (tenant_id, hold_id)
    GROUP BY l.tenant_id, l.budget_id, l.period_start
) AS l USING (tenant_id, budget_id, period_start)
WHERE u.committed <> coalesce(l.total, 0);

-- name: no_job_costs_more_than_its_ceiling()
SELECT tenant_id, hold_id::text AS subject,
       format('charged %s, ceiling %s', charged, ceiling) AS detail
FROM hold WHERE charged > ceiling;

-- name: counters_match_their_pages()
-- A job's counters are the states of its pages, and every page has its job.
SELECT tenant_id, job_id::text AS subject,
       format('counters %s, pages %s', j.counted, p.counted) AS detail
FROM (SELECT tenant_id, job_id,
             ARRAY[queued, in_flight, succeeded, failed, skipped]::bigint[] AS counted FROM job) AS j
FULL JOIN (
    SELECT tenant_id, job_id, ARRAY[
        coalesce(sum(pages) FILTER (WHERE state = 'queued'), 0),
        coalesce(sum(pages) FILTER (WHERE state = 'in_flight'), 0),
        coalesce(sum(pages) FILTER (WHERE state = 'succeeded'), 0),
        coalesce(sum(pages) FILTER (WHERE state = 'failed'), 0),
        coalesce(sum(pages) FILTER (WHERE state = 'skipped'), 0)]::bigint[] AS counted
    FROM page_sum GROUP BY tenant_id, job_id
) AS p USING (tenant_id, job_id)
WHERE coalesce(j.counted, '{0,0,0,0,0}') <> coalesce(p.counted, '{0,0,0,0,0}');

-- name: final_jobs_are_settled()
SELECT h.tenant_id, h.hold_id::text AS subject, 'the job is final, its hold is open' AS detail
FROM hold h JOIN job j ON j.tenant_id = h.tenant_id AND j.job_id = h.hold_id
WHERE h.state = 'open' AND j.finished_at IS NOT NULL;

-- name: settled_jobs_are_final()
SELECT h.tenant_id, h.hold_id::text AS subject, 'the hold is closed, its job goes on' AS detail
FROM hold h JOIN job j ON j.tenant_id = h.tenant_id AND j.job_id = h.hold_id
WHERE h.state = 'closed' AND j.finished_at IS NULL;

-- name: every_job_has_its_hold()
SELECT j.tenant_id, j.job_id::text AS subject, 'no hold' AS detail
FROM job j LEFT JOIN hold h ON h.tenant_id = j.tenant_id AND h.hold_id = j.job_id
WHERE h.hold_id IS NULL;

-- name: allocations_match_their_holds()
SELECT h.tenant_id, h.hold_id::text AS subject,
       format('hold %s/%s, allocations %s/%s', h.reserved, h.released,
              coalesce(a.reserved, 0), coalesce(a.released, 0)) AS detail
FROM hold h LEFT JOIN (
    SELECT tenant_id, hold_id, sum(reserved) AS reserved, sum(released) AS released
    FROM hold_allocation GROUP BY tenant_id, hold_id) AS a USING (tenant_id, hold_id)
WHERE (h.reserved, h.released) <> (coalesce(a.reserved, 0), coalesce(a.released, 0));

-- name: no_balance_is_negative()
SELECT tenant_id, account AS subject, sum(amount)::text AS detail
FROM (SELECT tenant_id, credit AS account, amount FROM transfer
      UNION ALL SELECT tenant_id, debit, -amount FROM transfer) AS postings
WHERE account <> 'issued'
GROUP BY tenant_id, account HAVING sum(amount) < 0;

-- name: fences_never_go_back()
-- A later charge of a hold was never made by an older run.
SELECT tenant_id, job_id::text AS subject, format('%s after %s', fence, before) AS detail
FROM (SELECT tenant_id, job_id, min(fence) AS fence, lag(max(fence)) OVER (
          PARTITION BY tenant_id, job_id ORDER BY transfer_id) AS before
      FROM page_sum WHERE transfer_id IS NOT NULL GROUP BY tenant_id, job_id, transfer_id) AS charges
WHERE before > fence;

-- name: refunds_are_within_their_charges()
-- What was given back of a page is at most what it was charged; the key makes it once.
SELECT r.tenant_id, format('%s/%s', r.job_id, r.page_no) AS subject,
       format('refunded %s, charged %s', r.amount, coalesce(p.credits, 0)) AS detail
FROM page_refund r LEFT JOIN page p USING (tenant_id, job_id, page_no)
WHERE r.amount > coalesce(p.credits, 0);

-- name: refunds_match_their_pages()
-- Each refund entry is the sum of the pages that it gave back, and no page was given back without.
SELECT coalesce(t.tenant_id, r.tenant_id) AS tenant_id, transfer_id::text AS subject,
       format('refund %s, pages %s', coalesce(t.amount, 0), coalesce(r.total, 0)) AS detail
FROM (SELECT tenant_id, transfer_id, amount FROM transfer WHERE kind = 'refund') AS t
FULL JOIN (SELECT tenant_id, transfer_id, sum(amount) AS total
           FROM page_refund GROUP BY tenant_id, transfer_id) AS r USING (tenant_id, transfer_id)
WHERE coalesce(t.amount, 0) <> coalesce(r.total, 0);

-- name: corrections_match_their_entries()
-- Every correction that is done has its entry, and no refund or adjustment came another way.
SELECT coalesce(c.tenant_id, t.tenant_id) AS tenant_id, transfer_id::text AS subject,
       format('correction %s of %s, entry %s of %s', c.kind, c.amount, t.kind, t.amount) AS detail
FROM (SELECT tenant_id, transfer_id, kind, amount FROM correction WHERE state = 'done') AS c
FULL JOIN (
    SELECT e.tenant_id, e.transfer_id, e.amount,
           CASE e.kind WHEN 'grant' THEN 'adjust_in' ELSE e.kind END AS kind
    FROM transfer e LEFT JOIN lot l ON l.tenant_id = e.tenant_id AND l.lot_id = e.lot_id
    WHERE e.kind IN ('refund', 'adjust_out') OR (e.kind = 'grant' AND l.source = 'adjust')
) AS t USING (tenant_id, transfer_id)
WHERE (c.kind, c.amount) IS DISTINCT FROM (t.kind, t.amount);

-- name: accepted_disputes_are_refunded()
SELECT d.tenant_id, d.dispute_id::text AS subject, format('page %s was not refunded', d.page_no)
       AS detail
FROM dispute_page d JOIN dispute_decision x USING (tenant_id, dispute_id)
LEFT JOIN page_refund r USING (tenant_id, job_id, page_no)
WHERE x.decision = 'accepted' AND r.page_no IS NULL;

-- name: pages_have_one_open_dispute()
SELECT d.tenant_id, format('%s/%s', d.job_id, d.page_no) AS subject,
       format('%s open disputes', count(*)) AS detail
FROM dispute_page d LEFT JOIN dispute_decision x USING (tenant_id, dispute_id)
WHERE x.dispute_id IS NULL
GROUP BY d.tenant_id, d.job_id, d.page_no HAVING count(*) > 1;

-- name: seals_are_chained()
-- Each seal names the head of the one before, and no number is left out.
SELECT tenant_id, seal_no::text AS subject,
       format('after seal %s, prev_head %s', before, encode(prev_head, 'hex')) AS detail
FROM (SELECT tenant_id, seal_no, prev_head, coalesce(lag(seal_no) OVER chain, 0) AS before,
             coalesce(lag(head) OVER chain, seal_origin_v1(tenant_id)) AS head_before
      FROM seal WINDOW chain AS (PARTITION BY tenant_id ORDER BY seal_no)) AS links
WHERE seal_no <> before + 1 OR prev_head <> head_before;

-- name: seals_match_their_entries()
-- Each head is the hash of the entries that its seal holds: none was changed, added or taken away.
SELECT s.tenant_id, s.seal_no::text AS subject,
       format('%s entries, sealed were %s', coalesce(e.entries, 0), s.entries) AS detail
FROM seal s LEFT JOIN (
    SELECT e.tenant_id, e.seal_no, count(*) AS entries,
           string_agg(sealed_text_v1(t) || E'\n', '' ORDER BY t.transfer_id) AS lines
    FROM seal_entry e JOIN transfer t USING (tenant_id, transfer_id)
    GROUP BY e.tenant_id, e.seal_no) AS e USING (tenant_id, seal_no)
WHERE s.head <> seal_head_v1(s, e.lines) OR s.entries <> coalesce(e.entries, 0);

-- name: entries_are_sealed()
-- What the sealing has passed by is in a seal: no entry came under the chain afterwards.
SELECT t.tenant_id, t.transfer_id::text AS subject, 'no seal' AS detail
FROM seal_position p JOIN transfer t ON t.transfer_id <= p.sealed_through
LEFT JOIN seal_entry e USING (tenant_id, transfer_id)
WHERE e.transfer_id IS NULL;

-- name: closed_periods_equal_their_entries()
-- A closed month moved what its entries say, and opened with what the month before closed with.
WITH moved AS (
    SELECT tenant_id, date_trunc('month', recorded_at AT TIME ZONE 'UTC')::date AS period, kind,
           count(*)::numeric AS entries, sum(amount) AS credits
    FROM transfer GROUP BY 1, 2, 3
), lines AS (
    SELECT c.tenant_id, c.period, replace(l.kind, 'adjust_in', 'grant') AS kind, l.entries,
           l.credits, l.available + l.held AS effect, l.held
    FROM period_close c CROSS JOIN jsonb_to_recordset(c.totals)
        AS l (kind text, entries bigint, credits bigint, available bigint, held bigint)
), told AS (
    SELECT tenant_id, period, kind, sum(entries) AS entries, sum(credits) AS credits
    FROM lines GROUP BY 1, 2, 3
), effects AS (
    SELECT tenant_id, period, sum(effect) AS effect, sum(held) AS held_effect
    FROM lines GROUP BY 1, 2
), chained AS (
    SELECT c.*, coalesce(lag(closing) OVER months, 0) AS before,
           coalesce(lag(closing_held) OVER months, 0) AS held_before,
           coalesce(lag(ends_at) OVER months, period::timestamp AT TIME ZONE 'UTC') AS begins_at,
           coalesce(e.effect, 0) AS effect, coalesce(e.held_effect, 0) AS held_effect
    FROM period_close c LEFT JOIN effects e USING (tenant_id, period)
    WINDOW months AS (PARTITION BY tenant_id ORDER BY period)
)
SELECT tenant_id, to_char(period, 'YYYY-MM') AS subject,
       format('%s: entries %s, statement %s', kind, m.credits, t.credits) AS detail
FROM moved m FULL JOIN told t USING (tenant_id, period, kind)
WHERE (m.entries, m.credits) IS DISTINCT FROM (t.entries, t.credits)
  AND period <= (SELECT max(c.period) FROM period_close c WHERE c.tenant_id
                 = coalesce(m.tenant_id, t.tenant_id))
UNION ALL
SELECT tenant_id, to_char(period, 'YYYY-MM'),
       format('opened with %s after %s, moved %s, closed with %s', opening, before, effect, closing)
FROM chained
WHERE (opening, opening_held) <> (before, held_before)
   OR closing <> opening + effect OR closing_held <> opening_held + held_effect
   OR begins_at <> period::timestamp AT TIME ZONE 'UTC';

-- name: the_feed_has_no_gaps()
-- Each tenant's events are numbered 1, 2, 3 … in the order of their entries.
SELECT tenant_id, transfer_id::text AS subject, format('event %s at place %s', seq, place) AS detail
FROM (SELECT tenant_id, transfer_id, seq,
             row_number() OVER (PARTITION BY tenant_id ORDER BY transfer_id) AS place
      FROM usage_event) AS events
WHERE seq <> place;

-- name: the_feed_has_every_entry()
-- What the numbering has passed by has its number.
SELECT t.tenant_id, t.transfer_id::text AS subject, 'no event' AS detail
FROM feed_position f JOIN transfer t ON t.transfer_id <= f.numbered_through
LEFT JOIN usage_event e USING (tenant_id, transfer_id)
WHERE e.seq IS NULL;
