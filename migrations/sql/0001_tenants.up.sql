-- Who pays: plans, tenants, keys; and the roles that every process takes.
-- The embedded server has made the roles already; a server of your own gets them here.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['pagetoll_app', 'pagetoll_system'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', wanted);
        END IF;
        IF NOT pg_has_role(current_user, wanted, 'MEMBER') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
        END IF;
    END LOOP;
END
$$;

CREATE TABLE plan (
    plan_id text PRIMARY KEY CHECK (plan_id ~ '^[a-z0-9_-]{1,40}$'),
    submits_per_minute integer NOT NULL CHECK (submits_per_minute > 0),
    status_per_minute integer NOT NULL CHECK (status_per_minute > 0),
    reads_per_minute integer NOT NULL CHECK (reads_per_minute > 0),
    running_jobs integer NOT NULL CHECK (running_jobs > 0),
    max_pages integer NOT NULL CHECK (max_pages > 0),
    max_timeout_seconds integer NOT NULL CHECK (max_timeout_seconds > 0),
    host_interval_seconds double precision NOT NULL CHECK (host_interval_seconds >= 0),
    host_concurrency integer NOT NULL CHECK (host_concurrency > 0),
    retention_hours integer NOT NULL CHECK (retention_hours BETWEEN 0 AND 720),
    may_ignore_robots boolean NOT NULL DEFAULT false,
    -- only inside PAGETOLL_ALLOW_NETWORKS, for tests and for a machine of one's own
    unpaced_allowed_networks boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);

INSERT INTO plan (plan_id, submits_per_minute, status_per_minute, reads_per_minute, running_jobs,
                  max_pages, max_timeout_seconds, host_interval_seconds, host_concurrency,
                  retention_hours, may_ignore_robots, unpaced_allowed_networks)
VALUES ('default', 10, 120, 600, 2, 10000, 3600, 0.5, 6, 24, false, false),
       ('local', 10000, 100000, 100000, 8, 1000000, 86400, 0.5, 6, 24, true, true);

CREATE TABLE tenant (
    tenant_id uuid PRIMARY KEY,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    plan_id text NOT NULL REFERENCES plan,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Only a hash of the secret is kept; key_id is the readable part that logs and lists show.
CREATE TABLE api_key (
    tenant_id uuid NOT NULL REFERENCES tenant,
    key_id text NOT NULL CHECK (key_id ~ '^[0-9A-Za-z]{12}$'),
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    secret_hash bytea NOT NULL CHECK (length(secret_hash) = 32),
    scopes text[] NOT NULL CHECK (
        cardinality(scopes) > 0
        AND scopes <@ ARRAY['jobs:read', 'jobs:write', 'billing:read', 'keys:write', 'admin']),
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    PRIMARY KEY (tenant_id, key_id)
);
CREATE INDEX api_key_by_id ON api_key (key_id);
