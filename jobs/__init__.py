"""What a job is and where it is kept; never writes credits."""
