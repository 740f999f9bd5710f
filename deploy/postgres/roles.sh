#!/bin/sh
# Runs once, in a new PostgreSQL cluster: the three roles of Pagetoll and its database.
# The owner migrates; the gateway's and the system's role own nothing and obey row-level security.
set -eu

psql --username "$POSTGRES_USER" --dbname postgres --set ON_ERROR_STOP=1 \
  --set owner_password="$PAGETOLL_OWNER_PASSWORD" \
  --set app_password="$PAGETOLL_APP_PASSWORD" \
  --set system_password="$PAGETOLL_SYSTEM_PASSWORD" <<'SQL'
CREATE ROLE pagetoll_owner LOGIN NOSUPERUSER CREATEROLE PASSWORD :'owner_password';
CREATE ROLE pagetoll_app LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'app_password';
CREATE ROLE pagetoll_system LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'system_password';
GRANT pagetoll_app, pagetoll_system TO pagetoll_owner WITH ADMIN OPTION;
CREATE DATABASE pagetoll OWNER pagetoll_owner;
SQL
