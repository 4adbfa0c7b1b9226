"""Several orchestrators on one database, as one client sees them: whom to ask, and whom not."""
