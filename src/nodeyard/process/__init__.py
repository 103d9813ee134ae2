"""What impure modules may use of the process: clock, logs, metrics."""
