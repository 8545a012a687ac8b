"""hpo_dryrun.same_kernels: which GPUs a recording answers for."""

import itertools

import pytest

from hpo_dryrun import same_kernels
from hpo_dryrun.replay import Gpu

GPUS = {
    "p100": Gpu(60, 56, 2048), "v100": Gpu(70, 80, 2048), "t4": Gpu(75, 40, 1024), "rtx2080ti": Gpu(75, 68, 1024),
    "a100": Gpu(80, 108, 2048), "rtx3060": Gpu(86, 28, 1536), "rtx3090": Gpu(86, 82, 1536), "l4": Gpu(89, 58, 1536),
    "h100": Gpu(90, 132, 2048), "h100-pcie": Gpu(90, 114, 2048), "b200": Gpu(100, 148, 2048),
}


@pytest.mark.parametrize("name", GPUS)
def test_a_gpu_of_the_same_shape_runs_the_same(name):
    assert same_kernels.same_kernels(GPUS[name], Gpu(**vars(GPUS[name])))


@pytest.mark.parametrize("a, b, libraries, expected", [
    ("h100", "a100", {"attention", "bfloat16", "cublas"}, []),
    ("h100", "l4", {"attention", "bfloat16", "cublas"}, []),
    ("h100", "l4", {"attention with large heads"}, ["attention with large heads"]),
    ("rtx3090", "l4", {"attention with large heads"}, []),
    ("a100", "t4", {"attention", "cublas"}, []),
    ("a100", "t4", {"bfloat16"}, ["bfloat16"]),
    ("v100", "t4", {"bfloat16"}, []),
    ("v100", "t4", {"attention"}, ["attention"]),  # was not compared
    ("h100", "b200", {"attention", "cublas"}, ["attention", "cublas"]),
    ("rtx3090", "rtx3060", {"cudnn"}, []),
    ("a100", "h100", {"cudnn"}, ["cudnn"]),
    ("h100", "h100-pcie", {"custom kernels", "large sort"}, ["custom kernels", "large sort"]),
])
def test_what_differs_is_named(a, b, libraries, expected):
    assert same_kernels.differences(GPUS[a], GPUS[b], libraries) == expected
    assert same_kernels.differences(GPUS[b], GPUS[a], libraries) == expected


def test_nothing_is_the_same_where_it_is_not_known_what_a_program_uses():
    for a, b in itertools.combinations(GPUS.values(), 2):
        assert not same_kernels.same_kernels(a, b)
