ALTER TABLE transfer DROP CONSTRAINT corrections_tell_why;
DROP TABLE dispute_decision;
DROP TABLE page_refund;
DROP TABLE correction;
DROP TABLE dispute_page;
DROP TABLE dispute;
DROP FUNCTION refuse_correction_change_v1();
