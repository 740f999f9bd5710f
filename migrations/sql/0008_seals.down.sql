REVOKE SELECT ON SEQUENCE transfer_transfer_id_seq FROM pagetoll_system;
DROP INDEX tenant_frozen;
ALTER TABLE tenant DROP CONSTRAINT frozen_has_its_cause, DROP COLUMN frozen_at,
    DROP COLUMN frozen_by;
DROP INDEX hold_closed;
DROP TABLE reconciliation_run;
DROP TABLE seal_position;
DROP TABLE seal_entry;
DROP TABLE seal;
