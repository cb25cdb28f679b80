"""Status: the state of runs, their jobs and results, with one round trip per cluster."""

from rabaska.steps.query_status import status, statuses

__all__ = ["status", "statuses"]
