"""Requests: from a frame on the socket to its answer."""
