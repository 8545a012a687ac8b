"""Two workers under one host, each with some of its emulated GPUs."""

from test_engines import RESULT, Engines

SHOWN = {"a": ("3,1", {3, 1}), "b": ("0", {0})}  # CUDA_VISIBLE_DEVICES, and the GPUs that this means


def beyond_their_own():
    """The number of GPUs that a worker used although it was not given them; fails where one used none."""
    host = Engines()
    host.setUp()
    try:
        host.start_server()
        workers = []
        for name, (visible, _) in SHOWN.items():
            trainer = f"echo $CUDA_VISIBLE_DEVICES >> {host.folder}/used-{name}; sleep 1; {RESULT}"
            workers.append(host.worker(name, "--name", name, device=(), trainer=trainer,
                                       environment=host.on_gpus(visible)))
        beyond = 0
        for (name, (_, own)), worker in zip(SHOWN.items(), workers):
            if status := worker.wait():
                raise RuntimeError(f"worker {name} ended with {status}:\n{worker.output()[-2000:]}")
            used = {uuid[:12] for uuid in (host.folder / f"used-{name}").read_text().split()}
            beyond += len(used - {host.uuid(card) for card in own})
        return beyond
    finally:
        host.tearDown()
