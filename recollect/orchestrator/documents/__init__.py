"""Documents: read from allowed places, cut into chunks, kept up to date as memories."""
