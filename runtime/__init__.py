"""What every process stands on; knows no business word."""
