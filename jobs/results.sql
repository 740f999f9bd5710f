-- name: final_pages(tenant_id, job_id, after, status, count)
-- Pages come in index order up to the first that is still open, so that a reader who passes the
-- cursor on while the job runs meets every page exactly once.
SELECT page_no, url, final_url, depth, state, reason, detail, http_status, content_type,
       fetched_at, duration_ms, bytes, credits, transfer_id AS entry_id, title, segment, segment_offset,
       segment_length, content_bytes
FROM page
WHERE tenant_id = :tenant_id AND job_id = :job_id AND page_no > :after
  AND page_no < coalesce((SELECT first_open_page_v1(:tenant_id, :job_id)), 2147483647)
  AND (:status::text IS NULL OR state = :status)
ORDER BY page_no
LIMIT :count;

-- name: last_final(tenant_id, job_id)
-- The last page a reader can have met so far.
SELECT coalesce(
    first_open_page_v1(:tenant_id, :job_id) - 1,
    (SELECT page_no FROM page WHERE tenant_id = :tenant_id AND job_id = :job_id
     ORDER BY page_no DESC LIMIT 1));
