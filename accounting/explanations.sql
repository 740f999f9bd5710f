-- name: entry(tenant_id, entry_id)
SELECT transfer_id, kind, debit, credit, amount, hold_id, lot_id, op_key, recorded_at, meta
FROM transfer WHERE tenant_id = :tenant_id AND transfer_id = :entry_id;

-- name: job(tenant_id, job_id)
SELECT job_id, kind, state, key_id, tags, max_pages, price_version, prices, created_at, finished_at
FROM job WHERE tenant_id = :tenant_id AND job_id = :job_id;

-- name: lot(tenant_id, lot_id)
SELECT lot_id, source, amount, remaining, expires_at, created_at
FROM lot WHERE tenant_id = :tenant_id AND lot_id = :lot_id;

-- name: charged_pages(tenant_id, job_id, entry_id, after, count)
SELECT page_no AS index, url, final_url, state AS status, reason, detail, outcome, http_status,
       content_type, title, bytes, encode(content_hash, 'hex') AS content_hash, fetched_at,
       settled_at, credits, transfer_id AS entry_id
FROM page
WHERE tenant_id = :tenant_id AND job_id = :job_id AND transfer_id = :entry_id AND page_no > :after
ORDER BY page_no LIMIT :count;

-- name: refunded_pages(tenant_id, entry_id, after, count)
SELECT p.page_no AS index, p.url, p.final_url, p.state AS status, p.reason, p.detail, p.outcome,
       p.http_status, p.content_type, p.title, p.bytes,
       encode(p.content_hash, 'hex') AS content_hash, p.fetched_at, p.settled_at, p.credits,
       p.transfer_id AS entry_id
FROM page_refund r JOIN page p USING (tenant_id, job_id, page_no)
WHERE r.tenant_id = :tenant_id AND r.transfer_id = :entry_id AND p.page_no > :after
ORDER BY p.page_no LIMIT :count;

-- name: page(tenant_id, job_id, page_no)
SELECT page_no AS index, url, final_url, state AS status, reason, detail, outcome, http_status,
       content_type, title, bytes, encode(content_hash, 'hex') AS content_hash, fetched_at,
       settled_at, credits, transfer_id AS entry_id
FROM page WHERE tenant_id = :tenant_id AND job_id = :job_id AND page_no = :page_no;
