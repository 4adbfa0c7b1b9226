"""Puts an orchestrator together from its settings: the one place that knows all the parts."""
