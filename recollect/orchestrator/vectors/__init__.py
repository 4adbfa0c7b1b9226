"""The vectors of memories: stored beside them, brought into an index, made late or all anew."""
