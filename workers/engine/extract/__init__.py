"""From bytes to the formats a job asked for."""
