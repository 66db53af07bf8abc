"""`make bench`: Lanewise beside other vector indexes, in one run on one machine.

    python -m compare            (with this package's parent folder on the path)

Every library works in a process of its own, so that thread pools and memory readings
do not mix. The driver asks them in turn, so that a disturbance of the machine meets
all alike. Ratios are formed inside a round and the median over the rounds is told.

    dataset.py   where vectors come from        worker.py   the process of one library
    recall.py    exact search, recall           driver.py   rounds over all workers
    adapters.py  one class per library          curves.py   speed at equal recall
    machine.py   what the run ran on            report.py, plot.py   Markdown, PNG
"""
