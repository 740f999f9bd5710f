-- The second wall between tenants: row-level security, forced, behind the keyed queries.
-- pagetoll_app sees one tenant per transaction; pagetoll_system (worker, watchdog, ledger) sees all.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['tenant', 'api_key', 'account', 'lot', 'transfer', 'hold',
                                'hold_allocation', 'job', 'page', 'excluded_url'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY one_tenant ON %I TO pagetoll_app USING '
                       '(tenant_id = nullif(current_setting(''pagetoll.tenant'', true), '''')::uuid)',
                       name);
        EXECUTE format('CREATE POLICY every_tenant ON %I TO pagetoll_system USING (true)', name);
        EXECUTE format('GRANT SELECT, INSERT ON %I TO pagetoll_system', name);
    END LOOP;
END
$$;
GRANT SELECT ON alembic_version TO pagetoll_app, pagetoll_system;
GRANT SELECT ON plan, price, tenant, job_status TO pagetoll_app;
GRANT SELECT, INSERT ON api_key, transfer, job, page, excluded_url, hold, hold_allocation
    TO pagetoll_app;
GRANT SELECT ON account, lot TO pagetoll_app;
GRANT INSERT ON lot TO pagetoll_app;
GRANT UPDATE ON account, lot, hold, hold_allocation, job, page TO pagetoll_app;
GRANT UPDATE (revoked_at) ON api_key TO pagetoll_app;

GRANT SELECT, INSERT, UPDATE ON plan TO pagetoll_system;
GRANT SELECT, INSERT ON price TO pagetoll_system;
GRANT SELECT ON job_status TO pagetoll_system;
GRANT UPDATE ON tenant, api_key, account, lot, hold, hold_allocation, job, page TO pagetoll_system;
