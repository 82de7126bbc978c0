"""Pieces of code as vectors: the model that makes them, and ChromaDB in a child process.
`embedding` makes them, `chromadb_manager` keeps them.
"""
