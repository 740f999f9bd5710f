-- name: reserve(tenant_id, items)
SELECT outcome, found_job, available_credits, refusal FROM reserve_group_v1(:tenant_id, :items);
