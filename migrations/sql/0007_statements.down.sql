REVOKE ALL ON SEQUENCE transfer_transfer_id_seq FROM pagetoll_system;
DROP INDEX transfer_newest;
DROP TABLE feed_position;
DROP TABLE usage_event;
DROP TABLE period_close;
