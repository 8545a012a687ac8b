"""A user's own program, as far as memory goes: bench/memory_foreign runs it behind `hpo-worker
--trainer`. It reports what it used, or that it ran out, and trains nothing."""

import math
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../examples/sklearn_trainer")]
import foreign_law  # noqa: E402
import hpo_trainer  # noqa: E402

LAW = foreign_law.Law(int(os.environ["HPO_LAW_SEED"]))


def train(job, report):
    del report
    params = job["params"]
    sizes = {name: params[name] for name in foreign_law.NAMES}
    used = LAW.run(sizes, random.Random(job["seed"]))
    if used > job["limit_bytes"]:
        raise hpo_trainer.OutOfMemory(f"tried to allocate beyond {job['limit_bytes']} bytes")
    hpo_trainer.used(used)
    # Larger is better, so that the search wants what is at the limit.
    size = sum(math.log(sizes[name] / largest[-1]) for name, largest in
               zip(foreign_law.NAMES, (foreign_law.BATCHES, foreign_law.LENGTHS,
                                       foreign_law.WIDTHS, foreign_law.LAYERS)))
    return {"score": math.exp(size / 8) - 0.1 * (math.log10(params["lr"]) + 4) ** 2}


hpo_trainer.main(train)
