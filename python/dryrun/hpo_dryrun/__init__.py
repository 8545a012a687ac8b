"""Dry runs of PyTorch programs on emulated GPUs: `python3 -m hpo_dryrun`, `hpo memory dry-run`.

With --json the command writes one document. Sizes are integers, in bytes. Names stay as they are; more may come.

command         the program's command, a list
largest         one for each GPU of a search with --largest, else empty:
                gpu, name, low, high, value (null: not even `low` fits), fails (the smallest
                value tried that does not fit, or null), tries: value, verdict, required_bytes (null where
                it does not fit)
gpus            one for each GPU; of a search, that of the largest value:
  gpu           its name, with the size where --gpu gave one
  name          as the emulated GPU calls itself
  capability    80 is compute capability 8.0
  allocator     the settings of --allocator, or null
  source        how it is known: "run", or "replay of GPU": the recorded allocations of that GPU's run, whose
                capability and number of threads are the same; with --ample "run with ample memory" and "replay of
                GPU with ample memory", whose number of threads may differ
  verdict       fits, tight (it might not fit with margin_bytes less memory), does not fit, unknown
  total_bytes, required_bytes, spare_bytes (total - required), margin_bytes
  needs_bytes   where it does not fit: required_bytes of a second run with ample memory, else null. The
                figures below are of that run then
  least_bytes   the least memory of the GPU with which the program runs, to 2 MiB: torch's allocator frees its
                cache where it must, and what is required beyond it. null: not known
  peak_allocated_bytes, peak_reserved_bytes   of torch's caching allocator
  fragmentation_bytes                         reserved and not allocated, at the peaks
  context_bytes, workspace_bytes, other_bytes, overhead_source   required beyond torch's allocator:
                the CUDA context, workspaces that are not torch's, buffers of NCCL and others; the source
  retries       times that torch freed its cache to go on
  phases        {load, first_step, steady_step, evaluation, after_steps}: peak_allocated_bytes,
                peak_reserved_bytes; a phase that was not seen is not there
  modules       the ten modules that hold most when most is allocated: module, weights_bytes,
                gradients_bytes, optimizer_bytes, activations_bytes, total_bytes
  out_of_memory null, or: message (torch's), phase, step, device, requested_bytes, allocated_bytes,
                reserved_bytes, count
  steps, steps_alike (whether the last three were), evaluation (whether one was seen)
  ended_early   whether the dry run ended the program
  epoch_steps   optimizer steps at the end of the epoch that it was in, by its data loader; null: not known
  device, rank, ranks    the process and the GPU of the machine that these figures are of; number of processes
  devices       of several processes or GPUs: those figures for each, else empty
  values        what depended on values that are not known
  never_stepped whether the program ended with an optimizer that has made no step
  endless       whether it was ended without a step, since it read values that are not known again and again
  reads_free_memory      whether the program asked how much memory is free, and may have gone by it
  notes         sentences that a reader should know, such as that a package's stand-in was used
  torch, seconds
"""
