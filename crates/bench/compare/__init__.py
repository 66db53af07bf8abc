"""`make bench-compare`: Lanewise beside other vector indexes, in one run on one machine.

    python -m compare            (with this package's parent folder on the path)

Every library works in a process of its own, so that thread pools and memory readings
do not mix. The driver asks them in turn, so that a disturbance of the machine meets
all alike. Ratios are formed inside a round and the median over the rounds is told.

    catalogue.py  data sets by name       dataset.py   the form they are kept in
    files.py, fashion.py, wordnet.py, generate.py      where their vectors come from
    adapters/     one class per library   worker.py    the process of one library
    driver.py     waves and rounds        recall.py    exact search, recall, dimension
    curves.py     speed at equal recall   machine.py   what the run ran on
    record.py     readings on disk        report.py, plot.py   the page, its pictures

A data set's readings are saved when it is through: `--resume` goes on after it.
"""
