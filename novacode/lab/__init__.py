"""The lab: every cancellation point of a scenario explored, and what is left judged from records."""
