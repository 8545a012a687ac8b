"""How far a program is in the epoch that its data loader serves: an evaluation often follows its end."""

import gc
import sys


def progress():
    """(batches that were taken, batches of the epoch) of the data loader that most were taken from; None: there is
    none, or nobody knows its length."""
    loaders = sys.modules.get("torch.utils.data.dataloader")
    if loaders is None:
        return None
    kinds = {loaders._SingleProcessDataLoaderIter, loaders._MultiProcessingDataLoaderIter}
    found = []
    # type(), not isinstance: objects of the program may answer __class__ in costly ways.
    for thing in gc.get_objects():
        if type(thing) in kinds and thing._num_yielded:
            try:
                found.append((thing._num_yielded, len(thing)))
            except TypeError:  # of an iterable data set
                continue
    return max(found, default=None)
