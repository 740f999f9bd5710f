DROP INDEX page_url;
ALTER TABLE page ADD UNIQUE (tenant_id, job_id, url_key);
DROP INDEX page_open;
CREATE INDEX page_queued ON page (tenant_id, job_id, depth, page_no) WHERE state = 'queued';
CREATE INDEX page_in_flight ON page (tenant_id, job_id, page_no) WHERE state = 'in_flight';
ALTER TABLE page SET (fillfactor = 70);
ALTER TABLE page ADD FOREIGN KEY (tenant_id, transfer_id) REFERENCES transfer;
ALTER TABLE page ADD FOREIGN KEY (tenant_id, job_id) REFERENCES job;
REVOKE USAGE ON SEQUENCE transfer_transfer_id_seq FROM pagetoll_app, pagetoll_system;
DROP TRIGGER final_page_stays ON page;
CREATE TRIGGER final_page_stays BEFORE UPDATE OR DELETE ON page FOR EACH ROW
    WHEN (old.state IN ('succeeded', 'failed', 'skipped'))
    EXECUTE FUNCTION refuse_final_page_change_v1();
DROP TRIGGER state_follows ON job;
CREATE OR REPLACE FUNCTION refuse_state_change_v1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'job % cannot go from % to %', old.job_id, old.state, new.state
        USING ERRCODE = 'PT409';
END
$$;
CREATE TRIGGER state_follows BEFORE UPDATE ON job FOR EACH ROW
    WHEN (old.state <> new.state AND NOT may_follow_v1(old.state, new.state))
    EXECUTE FUNCTION refuse_state_change_v1();
