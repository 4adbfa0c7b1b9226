"""Finding memories: words (FTS5), meaning (FAISS), and the filters that apply before either."""
