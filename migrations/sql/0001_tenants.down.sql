-- The roles stay: other databases of the same server may use them.
DROP TABLE api_key;
DROP TABLE tenant;
DROP TABLE plan;
