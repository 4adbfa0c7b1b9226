"""`recollect up`: all processes of this machine under one supervisor."""
