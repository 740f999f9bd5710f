DROP VIEW job_status;
DROP TABLE excluded_url;
DROP TABLE page;
DROP TABLE job;
DROP FUNCTION refuse_final_page_change_v1();
DROP FUNCTION refuse_final_job_change_v1();
