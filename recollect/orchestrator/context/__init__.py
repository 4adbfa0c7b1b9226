"""Context for a task: found in every tier, chosen within a budget, fenced, known again later."""
