-- The paths of every page and of every submit, with fewer writes.

-- `state` is in no index, so that claiming a page writes no index entry (a heap-only update).
DROP INDEX page_queued;
DROP INDEX page_in_flight;
CREATE INDEX page_open ON page (tenant_id, job_id, depth, page_no) WHERE settled_at IS NULL;
ALTER TABLE page SET (fillfactor = 50);

-- Two unique indexes that begin alike are one as good as the other to a planner whose statistics know
-- small jobs only, and one of them then reads a whole job for each look-up. By the job's id in bytes,
-- this one can answer for URLs alone, and nothing else can.
ALTER TABLE page DROP CONSTRAINT page_tenant_id_job_id_url_key_key;
CREATE UNIQUE INDEX page_url ON page (uuid_send(job_id), url_key);

-- A page's job and its charge are looked for by the proofs, both ways, and not for each page
-- (docs/decisions/011).
ALTER TABLE page DROP CONSTRAINT page_tenant_id_transfer_id_fkey;
ALTER TABLE page DROP CONSTRAINT page_tenant_id_job_id_fkey;

-- settle_pages_v2 draws an entry's number before it knows the sum.
GRANT USAGE ON SEQUENCE transfer_transfer_id_seq TO pagetoll_app, pagetoll_system;

DROP FUNCTION IF EXISTS write_pages_v1(uuid, uuid, bigint, jsonb, bigint);
DROP FUNCTION IF EXISTS write_found_v1(uuid, uuid, jsonb);
DROP FUNCTION IF EXISTS write_facts_v1(uuid, uuid, jsonb);
DROP FUNCTION IF EXISTS charge_v1(uuid, uuid, bigint, text);
DROP FUNCTION IF EXISTS release_excess_v1(uuid, uuid, text);

-- A null test is prepared for each statement in no time; a list of states was not.
DROP TRIGGER final_page_stays ON page;
CREATE TRIGGER final_page_stays BEFORE UPDATE OR DELETE ON page FOR EACH ROW
    WHEN (old.settled_at IS NOT NULL) EXECUTE FUNCTION refuse_final_page_change_v1();

-- The table of steps is read where a state changes, and not prepared for each write of a job.
DROP TRIGGER state_follows ON job;
CREATE OR REPLACE FUNCTION refuse_state_change_v1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF may_follow_v1(old.state, new.state) THEN
        RETURN new;
    END IF;
    RAISE EXCEPTION 'job % cannot go from % to %', old.job_id, old.state, new.state
        USING ERRCODE = 'PT409';
END
$$;
CREATE TRIGGER state_follows BEFORE UPDATE ON job FOR EACH ROW
    WHEN (old.state <> new.state) EXECUTE FUNCTION refuse_state_change_v1();
