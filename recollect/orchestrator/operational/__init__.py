"""What happens right now: events, metrics, active tasks; in process, or shared through Redis."""
