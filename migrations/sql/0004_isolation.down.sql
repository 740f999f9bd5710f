DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['tenant', 'api_key', 'account', 'lot', 'transfer', 'hold',
                                'hold_allocation', 'job', 'page', 'excluded_url'] LOOP
        EXECUTE format('DROP POLICY one_tenant ON %I', name);
        EXECUTE format('DROP POLICY every_tenant ON %I', name);
        EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I DISABLE ROW LEVEL SECURITY', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['plan', 'price', 'tenant', 'api_key', 'account', 'lot', 'transfer',
                                'hold', 'hold_allocation', 'job', 'page', 'excluded_url',
                                'job_status', 'alembic_version'] LOOP
        EXECUTE format('REVOKE ALL ON %I FROM pagetoll_app, pagetoll_system', name);
    END LOOP;
END
$$;
