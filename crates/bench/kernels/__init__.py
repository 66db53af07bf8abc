"""`make bench-kernels`: every kernel beside other libraries' and the machine's limits, in one run.

    python -m kernels            (with this package's parent folder on the path)

One thread, one process, one clock: a C loop (`harness.c`) calls our kernels and the peers'
through pointers, never through Python. All that serve one kernel, size and form take turns,
round after round, so that a disturbance of the machine meets all alike; ratios are formed
inside a round and the median over the rounds is told. Among those who take turns are two
that do only half of the work, the loads or the arithmetic: the slower one is the limit.

    cases.py     what is measured: kernels, sizes, forms     harness.c    the clock
    memory.py    the vectors                                 native.py    the harness from Python
    lanewise.py  our variants, from the shared library       expected.py  what the results must be
    peers.py     NumKong, SimSIMD, FAISS                     limits.py    loads alone, steps alone
    measure.py   rounds                                      report.py, roofline.py  the record
    panama.py    Lucene, by java/jmh                         arm.py       instructions under qemu
"""
