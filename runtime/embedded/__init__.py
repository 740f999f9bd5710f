"""PostgreSQL and Redis as child processes, for machines where nobody has set them up."""
