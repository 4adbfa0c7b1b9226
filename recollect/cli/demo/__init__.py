"""`recollect demo`: a system of its own that lives for as long as somebody looks at it."""
